"""The measures of privacy, one file each: the loss, its order and conversions, and the sum that composes it.

`privacy/loss.py` lists what a measure answers; `privacy/losses.py` has them all in one place.
"""

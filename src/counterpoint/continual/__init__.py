"""Counting under continual observation: counters, and monotone functions of growing histograms.

>>> import counterpoint as cp
>>> cp.continual.max_of((3, 9, -4))
9
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

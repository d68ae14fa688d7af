"""Randomness: coins as an argument of a mechanism, and exact samplers on them.

`SecureCoins` draws from the operating system; `SeededCoins` repeats a run in a test; `EnumeratedCoins` makes every toss
both ways, and so computes the exact `Law` of what is drawn.

>>> import counterpoint as cp
>>> mechanism = cp.Laplace(epsilon=1)
>>> mechanism.start(cp.coins.SeededCoins(1)) == mechanism.start(cp.coins.SeededCoins(1))
True
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

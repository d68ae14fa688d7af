"""Local-model protocols: an untrusted server, users who hold their own data, many rounds.

See Henzinger et al. 2024, sec. 8 and 9.

>>> import counterpoint as cp
>>> triangle = [(0, 1), (1, 2), (2, 0)]
>>> cp.local.core_decomposition(triangle, epsilon=20, vertices=3, coins=cp.coins.SeededCoins(1)).loss
OptimalParts(2 x PureDP(10))
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

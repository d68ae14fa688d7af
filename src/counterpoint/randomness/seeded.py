"""SeededCoins: coins for tests and examples, which anyone who knows the small seed can predict.

Never ship these: an adversary who guesses the seed subtracts the noise. In production use `SecureCoins()`, and for the
replay of one request `SecureCoins(seed)` with 32 secret bytes.

>>> from counterpoint import SeededCoins
>>> SeededCoins(7).discrete_laplace(10) == SeededCoins(7).discrete_laplace(10)
True
"""

import hashlib

from counterpoint.numbers.exact import whole
from counterpoint.randomness.secure import SecureCoins


class SeededCoins(SecureCoins):
    """The same laws and the same code as `SecureCoins`, keyed by a hash of a small number or of any bytes.

    >>> SeededCoins(7)
    SeededCoins(keyed by a seed)
    """

    __slots__ = ()

    def __init__(self, seed: int | bytes) -> None:
        name = b"bytes " + seed if isinstance(seed, bytes) else b"number %d" % whole(seed, 0, "the seed")
        super().__init__(hashlib.sha256(b"counterpoint seeded coins: " + name).digest())

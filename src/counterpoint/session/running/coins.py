"""The coins of one step: they belong to it alone, as its seed, path, version and body all enter.

They are keyed when they are first tossed: many a mechanism starts without a draw, and making a cipher takes longer
than such a start. Whatever finishes the step, now or after a crash, tosses the same coins.

>>> from counterpoint.ledger.ledger import Intent
>>> intent = Intent("a request", b"[]", (0,), 3, "v1", bytes(32))
>>> StepCoins(intent).integer(10**9) == StepCoins(intent).integer(10**9)
True
"""

import hashlib
import threading
from typing import overload

from counterpoint.encoding import digest
from counterpoint.errors import LedgerError
from counterpoint.ledger.ledger import Intent
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, whole
from counterpoint.randomness.coins import Integers
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.samplers import version_1
from counterpoint.randomness.secure import SAMPLER_VERSION, SecureCoins

_FIRST = 1
"""The version of the sampler that drew other discrete Gaussians, and a single draw as a vector of one."""


class StepCoins(SecureCoins):
    """Secure coins, seeded by an intent."""

    __slots__ = ("_intent", "_made", "_making")

    def __init__(self, intent: Intent) -> None:
        if not _FIRST <= intent.sampler <= SAMPLER_VERSION:
            raise LedgerError(
                f"this request was begun with version {intent.sampler} of the sampler, and this is version "
                f"{SAMPLER_VERSION}: other noise would be drawn for it; finish it with the version that began it"
            )
        self._intent = intent
        self._made: Keystream | None = None
        self._making = threading.Lock()

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """As the version drew it that began the step."""
        if self._intent.sampler != _FIRST:
            return super().discrete_gaussian(sigma2, size)
        count = 1 if size is None else whole(size, 0, "size")
        drawn = version_1.discrete_gaussian(positive(sigma2, "sigma2"), count, self._stream)
        return int(drawn[0]) if size is None else drawn

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """As the version drew it that began the step."""
        if size is None and self._intent.sampler == _FIRST:
            return int(super().rounded_normal(sigma2, 1)[0])
        return super().rounded_normal(sigma2, size)

    @property
    def _stream(self) -> Keystream:  # type: ignore[override]  # no draw replaces it
        """The stream, made for the first draw; once, as two threads with a stream each would draw the same noise."""
        if self._made is not None:
            return self._made
        with self._making:
            if self._made is None:
                intent = self._intent
                bound = digest(intent.path, intent.version, hashlib.sha256(intent.body).hexdigest())
                self._made = Keystream(hashlib.sha256(intent.seed + bound).digest())
            return self._made

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

from counterpoint.encoding import digest
from counterpoint.errors import LedgerError
from counterpoint.ledger.ledger import Intent
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.secure import SAMPLER_VERSION, SecureCoins


class StepCoins(SecureCoins):
    """Secure coins, seeded by an intent."""

    __slots__ = ("_intent", "_made", "_making")

    def __init__(self, intent: Intent) -> None:
        if intent.sampler != SAMPLER_VERSION:
            raise LedgerError(
                f"this request was begun with version {intent.sampler} of the sampler, and this is version "
                f"{SAMPLER_VERSION}: other noise would be drawn for it; finish it with the version that began it"
            )
        self._intent = intent
        self._made: Keystream | None = None
        self._making = threading.Lock()

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

"""The clock by which API keys expire: it does not go back. (That of grants is `Unit.now`.)

A clock that is set back, by mistake or by a time server that others command, would let what has expired stand again. So
the latest time that was seen counts: on the chain, where it outlives the process, or since then in this process.

>>> clock = LedgerClock()
>>> clock.see(later := clock.now() + 3600)
>>> clock.now() == later
True
"""

import time


class LedgerClock:
    """Seconds since 1970, never less than what was seen."""

    __slots__ = ("latest",)

    def __init__(self, latest: int = 0) -> None:
        self.latest = latest

    def see(self, at: int) -> None:
        """It was so late."""
        self.latest = max(self.latest, at)

    def now(self) -> int:
        """How late it is."""
        self.see(int(time.time()))
        return self.latest

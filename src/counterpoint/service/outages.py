"""One line of the log when a ledger, its witness or the data behind it fails, and one when it works again.

Many requests meet one failure, and a request that is repeated meets it several times. So what has failed is remembered,
and counts as recovered when a later request finds it still working. The lines are of the default level; the reason is
in our own words, which quote no data.

>>> outage = Outage("people")
>>> outage.begin(DataLost("the connection was lost")); outage.begin(DataLost("the connection was lost"))
>>> outage.parts
('data',)
>>> outage.end()
>>> outage.parts
()
"""

import logging
import threading
import time

from counterpoint.errors import CounterpointError, DataLost, WitnessFailed

_log = logging.getLogger("counterpoint.service")


class Outage:
    """What is out of reach of one data set, and since when. Threads share it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}

    @property
    def parts(self) -> tuple[str, ...]:
        """What does not work now, of `ledger`, `witness` and `data`."""
        return tuple(self._since)

    def begin(self, error: CounterpointError) -> None:
        """Log that a part has failed, unless it is known to."""
        part = _part(error)
        with self._lock:
            if part in self._since:
                return
            self._since[part] = time.monotonic()
        said = {"event": "failed", "what": part, "of": self._name, "error": type(error).__name__}
        _log.error("failed", extra={"said": {**said, "reason": str(error)}})

    def end(self) -> None:
        """Log that everything works again, if something had failed."""
        with self._lock:
            over, self._since = self._since, {}
        for part, began in over.items():
            said = {"event": "recovered", "what": part, "of": self._name}
            _log.warning("recovered", extra={"said": {**said, "seconds": round(time.monotonic() - began, 1)}})


def note_reopened(name: str, by: str) -> None:
    """Log that a custodian has reopened data that could not answer, which `counterpoint.custodian` has logged."""
    _log.warning("recovered", extra={"said": {"event": "recovered", "what": "data", "of": name, "by": by}})


def _part(error: CounterpointError) -> str:
    if isinstance(error, WitnessFailed):
        return "witness"
    return "data" if isinstance(error, DataLost) else "ledger"

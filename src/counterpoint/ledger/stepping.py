"""While a mechanism works out an answer, it may not ask or launch.

A postprocessor that asked its own handle would wait for itself for ever, and two that asked each other's, for each
other. Nor could such an answer be finished from its seed after a crash: what it asked is not on its record.

>>> with stepping:
...     must_not_step()
Traceback (most recent call last):
...
counterpoint.errors.NotAllowed: a mechanism or postprocessor asked or launched something while it worked out...
>>> must_not_step()
"""

import threading

from counterpoint.errors import NotAllowed


class _Stepping(threading.local):
    """How many steps a thread is in the midst of."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *error: object) -> None:
        self.count -= 1


stepping = _Stepping()
"""While a mechanism's code runs in this thread: `with stepping:`."""


def must_not_step() -> None:
    """`NotAllowed` in the midst of a step."""
    if stepping.count:
        raise NotAllowed(
            "a mechanism or postprocessor asked or launched something while it worked out an answer: it sees what it "
            "is given, and asks nothing itself. Ask first, and give it the answer; or make a Composite of both"
        )

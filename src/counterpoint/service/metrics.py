"""Prometheus metrics and JSON log lines, neither of which contains a key, a question or an answer.

The labels of what is counted are a method, a route's template, a status or the class of an error; gauges (`gauges.py`)
name data sets and grants. Refusals are for custodians: the
number of them would tell an auditor that a mechanism has halted, which may follow from its answers. Any worker reports
for all: each writes its counts to a file in a shared folder, and files of ended workers stay, so no counter goes down.

>>> meter = RequestMeter()
>>> meter.begin()
>>> meter.count("GET", "/v1/sessions/{session}", 200, seconds=0.004)
>>> [line for line in meter.lines() if line.startswith("counterpoint_requests_total")]
['counterpoint_requests_total{method="GET",route="/v1/sessions/{session}",status="200"} 1']

Our own log lines list their fields (`extra={"said": {...}}`). Of another library's line only the origin is written: its
words may quote their input; of an error, its class and the lines of code that it passed through.

>>> import logging
>>> record = logging.LogRecord("psycopg", logging.WARNING, "", 0, "password is 'secret'", (), None)
>>> "secret" in JsonLines().format(record)
False
"""

import asyncio
import json
import logging
import os
import re
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from litestar import MediaType, Request, get
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.coins.keystream import fresh
from counterpoint.errors import CounterpointError
from counterpoint.ledger.store.group_commit import COMMITS, Durations
from counterpoint.service.api.inputs import for_roles
from counterpoint.service.gauges import Gauges
from counterpoint.service.identity import Role

FAMILIES = {
    "counterpoint_requests_total": "counter",
    "counterpoint_errors_total": "counter",
    "counterpoint_request_seconds": "histogram",
    "counterpoint_answered_seconds": "histogram",
    "counterpoint_commit_seconds": "histogram",
    "counterpoint_requests_in_flight": "gauge",
}
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
"""Other methods, of which a client can make up any number, are counted as one."""
_WITH_REFUSALS = re.compile(r'counterpoint_requests_total\{.*status="4\d\d"\}|counterpoint_(errors|request_seconds)')
KEPT_AFTER = 1.0
"""Seconds after which what was counted is in the worker's file."""
_log = logging.getLogger("counterpoint.service")


class RequestMeter:
    """Counts of one process, and with a folder those of all that share it. Only the event loop changes them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._errors: Counter[str] = Counter()
        self._seconds: dict[str, Durations] = {}
        self._answered: dict[str, Durations] = {}
        self._file = None if folder is None else folder / f"{os.getpid()}-{fresh(8).hex()}.json"
        self._is_due = False
        self._in_flight = 0

    def begin(self) -> None:
        """A request has begun; `count` ends it."""
        self._in_flight += 1

    def count(self, method: str, route: str, status: int, *, seconds: float) -> None:
        """A request that was answered."""
        self._in_flight -= 1
        self._requests[method if method in METHODS else "other", route, status] += 1
        self._seconds.setdefault(route, Durations()).add(seconds)
        if not 400 <= status < 500:
            self._answered.setdefault(route, Durations()).add(seconds)

    def refuse(self, kind: str) -> None:
        """An error of the library."""
        self._errors[kind] += 1

    def keep_soon(self) -> None:
        """Write the file in a second, unless that is going to happen anyway."""
        if self._file is not None and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(KEPT_AFTER, self.keep)

    def keep(self) -> None:
        """Write the file; a reader finds the one before or this one, whole."""
        self._is_due = False
        if self._file is not None:
            written = self._file.with_suffix(".new")
            written.write_bytes(msgspec.json.encode(self._samples()))
            written.replace(self._file)

    def lines(self, *, refusals: bool = True) -> Iterator[str]:
        """The counts of all workers, as Prometheus reads them."""
        self.keep()  # or the next scrape, of another worker, would find less
        total: Counter[str] = Counter(self._samples())
        for file in () if self._file is None else self._file.parent.glob("*.json"):
            if file != self._file:
                theirs = msgspec.json.decode(file.read_bytes(), type=dict[str, float])
                if not _is_running(file):
                    theirs.pop(_IN_FLIGHT, None)
                total.update(theirs)
        for family, kind in FAMILIES.items():
            yield f"# TYPE {family} {kind}"
            for name, number in total.items():
                if name.startswith(family) and (refusals or not _WITH_REFUSALS.match(name)):
                    yield f"{name} {number:.15g}"

    def _samples(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (method, route, status), number in sorted(self._requests.items()):
            found[f'counterpoint_requests_total{{method="{method}",route="{route}",status="{status}"}}'] = number
        for kind, number in sorted(self._errors.items()):
            found[f'counterpoint_errors_total{{type="{kind}"}}'] = number
        for route, seconds in sorted(self._seconds.items()):
            found |= seconds.samples("counterpoint_request_seconds", f'route="{route}"')
        for route, seconds in sorted(self._answered.items()):
            found |= seconds.samples("counterpoint_answered_seconds", f'route="{route}"')
        return found | dict(COMMITS.samples("counterpoint_commit_seconds")) | {_IN_FLIGHT: self._in_flight}


_IN_FLIGHT = "counterpoint_requests_in_flight"


def _is_running(file: Path) -> bool:
    """Whether the worker that wrote a file is there: one that was killed has nothing in flight."""
    try:
        os.kill(int(file.name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    return True


class Metering:
    """Counts each request, and writes a line of the log about it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run it, and note its status and its time, whatever becomes of it."""
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        began, statuses = time.monotonic(), [500]
        _meter(scope).begin()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception:  # an error before the handler: the application makes a response of it outside
            statuses.append(0)
            raise
        finally:
            _note(scope, statuses[-1], time.monotonic() - began)


async def note_error(error: Exception, scope: Scope) -> None:
    """A hook of the application: count an error of the library by its class, and log a fault of ours."""
    if isinstance(error, CounterpointError):
        _meter(scope).refuse(type(error).__name__)
    elif not isinstance(error, HTTPException):
        _log.error("fault", exc_info=error, extra={"said": {"event": "fault"}})


@get("/metrics", guards=[for_roles(Role.CUSTODIAN, Role.AUDITOR)], media_type=MediaType.TEXT, summary="Metrics")
async def metrics(request: Request[Any, Any, Any]) -> str:
    """As Prometheus reads them: what all workers counted, for a custodian with refusals; and gauges of this moment."""
    refusals = request.user.role is Role.CUSTODIAN
    gauges: Gauges = request.app.state.gauges
    read = await asyncio.get_running_loop().run_in_executor(None, gauges.lines)
    return "\n".join([*_meter(request.scope).lines(refusals=refusals), *read, ""])


def _meter(scope: Any) -> RequestMeter:
    found: RequestMeter = scope["litestar_app"].state.meter
    return found


def _note(scope: Any, status: int, seconds: float) -> None:
    route, meter = scope.get("path_template") or "other", _meter(scope)
    meter.count(scope["method"], route, status, seconds=seconds)
    meter.keep_soon()
    if not _log.isEnabledFor(logging.INFO):
        return
    who = scope.get("user")
    said = {"event": "request", "method": scope["method"], "route": route, "status": status}
    _log.info("request", extra={"said": {**said, "seconds": round(seconds, 6), "who": who.name if who else None}})


_PLAIN = ("uvicorn.error", "counterpoint.service.connections")
"""Loggers whose lines are about the process alone: started, stopped."""


class JsonLines(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level and logger, what it says, and where an error came from."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line: dict[str, Any] = {"at": when, "level": record.levelname.lower(), "logger": record.name}
        line |= getattr(record, "said", None) or {}
        if record.name in _PLAIN and record.exc_info is None:
            line["message"] = record.getMessage()
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["through"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
        return json.dumps(line)


def configuration(level: str) -> dict[str, Any]:
    """A configuration for `logging.config`: every record of this level is a line on stderr."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "counterpoint.service.metrics.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
    }

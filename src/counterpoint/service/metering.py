"""Metrics for Prometheus, and a line of the log for each request: routes, statuses and times, nothing that was said.

A label is a method, a route's template, a status or the class of an error. No question, session, answer or name of a
principal is in a metric. Each worker counts for itself, under its process id.

>>> meter = RequestMeter()
>>> meter.count("GET", "/v1/sessions/{session}", 200, seconds=0.004)
>>> [line for line in meter.lines() if line.startswith("counterpoint_requests_total")]
['counterpoint_requests_total{method="GET",process="...",route="/v1/sessions/{session}",status="200"} 1']
"""

import logging
import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Any

from litestar import MediaType, Request, get
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.errors import CounterpointError
from counterpoint.service.identity import Role
from counterpoint.service.routes.guards import for_roles

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper ends of the histogram's buckets, in seconds."""
_log = logging.getLogger("counterpoint.service")


class RequestMeter:
    """Counts of one process. Only the event loop changes them."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._errors: Counter[str] = Counter()
        self._seconds: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, *, seconds: float) -> None:
        """A request that was answered."""
        self._requests[method, route, status] += 1
        self._seconds.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]  # a sum of seconds, of any size

    def refuse(self, kind: str) -> None:
        """An error of the library."""
        self._errors[kind] += 1

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        yield "# TYPE counterpoint_requests_total counter"
        for (method, route, status), number in sorted(self._requests.items()):
            yield _line("counterpoint_requests_total", number, method=method, route=route, status=status)
        yield "# TYPE counterpoint_errors_total counter"
        for kind, number in sorted(self._errors.items()):
            yield _line("counterpoint_errors_total", number, type=kind)
        yield "# TYPE counterpoint_request_seconds histogram"
        for route, buckets in sorted(self._seconds.items()):
            below = 0
            for bound, number in zip((*BOUNDS, "+Inf"), buckets, strict=True):
                below += number
                yield _line("counterpoint_request_seconds_bucket", below, route=route, le=bound)
            yield _line("counterpoint_request_seconds_sum", self._sums[route], route=route)
            yield _line("counterpoint_request_seconds_count", below, route=route)


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
    """Counters and histograms of this worker, as Prometheus reads them."""
    return "\n".join([*_meter(request.scope).lines(), ""])


def _meter(scope: Any) -> RequestMeter:
    found: RequestMeter = scope["litestar_app"].state.meter
    return found


def _note(scope: Any, status: int, seconds: float) -> None:
    route = scope.get("path_template") or "other"
    _meter(scope).count(scope["method"], route, status, seconds=seconds)
    if not _log.isEnabledFor(logging.INFO):
        return
    who = scope.get("user")
    said = {"event": "request", "method": scope["method"], "route": route, "status": status}
    _log.info("request", extra={"said": {**said, "seconds": round(seconds, 6), "who": who.name if who else None}})


def _line(name: str, value: float, **labels: object) -> str:
    inside = ",".join(f'{label}="{of}"' for label, of in sorted({**labels, "process": os.getpid()}.items()))
    return f"{name}{{{inside}}} {value}"

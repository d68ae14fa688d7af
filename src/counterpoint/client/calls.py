"""Calls to a service, written once for connections that wait and for connections that are awaited.

A method of the client is a generator: it yields a `Call`, receives the service's response and returns its result.
`served` turns it into a method. `Connection` runs it and waits; `AsyncConnection` returns a coroutine. An error of the
service is raised at the `yield`. The table `NOT_SERVED` lists what only a local session does.

>>> def launched(id):
...     response = yield Call("POST", "/v1/sessions/people.0/launches", {"mechanism": {}}, id)
...     return response["handle"]
>>> steps = launched("monday")
>>> next(steps).id
'monday'
>>> try:
...     steps.send({"handle": "people.0.0"})
... except StopIteration as end:
...     end.value
'people.0.0'

>>> not_served("Session", "rehearse")
Traceback (most recent call last):
...
counterpoint.errors.NotAllowed: a served session has no rehearse: rehearse on made-up rows of the same declaration, ...
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

from counterpoint.errors import CounterpointError, NotAllowed, ServiceFailed
from counterpoint.wire.problems import error_of
from counterpoint.wire.requests import PAGE

LONGEST_PAUSE = 30.0
"""For how many seconds a call waits at most before it is sent again."""

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a service. With an `id` it is charged once, however often it is sent."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    id: str | None = None
    query: Mapping[str, int | str] | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """Code of the caller's own that makes calls while it runs: a postprocessor, which runs here and is never sent.

    `code` is given what runs calls and waits for their result. An asynchronous connection runs it in a thread.
    """

    code: Callable[[Callable[["Calls[Any]"], Any]], Any]


Calls: TypeAlias = Generator[Call | Reaction, Any, T]
"""The calls that lead to a result."""


def all_of(path: str) -> Calls[list[dict[str, Any]]]:
    """The entries of a list that comes in pages."""
    found: list[dict[str, Any]] = []
    while True:
        page = yield Call("GET", path, query={"after": len(found)})
        found += page
        if len(page) < PAGE:
            return found


class Runner(Protocol):
    """A connection: it runs calls."""

    def run(self, calls: Calls[Any]) -> Any:
        """Their result; of an asynchronous connection, a coroutine that gives it."""

    def follow(self, path: str, seconds: float | None) -> Any:
        """The events that are sent there, as an iterator; of an asynchronous connection, as an asynchronous one."""


class Remote:
    """An object in a service that is called over a connection."""

    _service: Runner


R = TypeVar("R", bound=Remote)


def served(method: Callable[Concatenate[R, P], Calls[Any]]) -> Callable[Concatenate[R, P], Any]:
    """A method that makes these calls; over an asynchronous connection, it is awaited."""

    @wraps(method)
    def run(self: R, /, *args: P.args, **options: P.kwargs) -> Any:
        return self._service.run(method(self, *args, **options))

    return run


@dataclass(frozen=True, slots=True)
class ServiceReply:
    """The response to a call with its status, or status None if the service was not reached."""

    status: int | None
    content: Any = None
    wait: float | None = None
    """For how many seconds the service wants not to be asked, if it says so."""

    @property
    def is_worth_repeating(self) -> bool:
        """Whether the same call may go through later: the service was not reached, was busy, or is being restarted."""
        return self.status is None or self.status in (429, 502, 503, 504)

    def pause(self, pause: float) -> float:
        """How many seconds to wait before the call is sent again: as the service says, at least `pause`."""
        return min(max(pause, self.wait or 0.0), LONGEST_PAUSE)

    def result(self, call: Call) -> Any:
        """The service's response, or the error that it reports."""
        if self.status is not None and 200 <= self.status < 300:
            return self.content
        error = self._error()
        if call.id is not None and self.is_worth_repeating:
            error.add_note(f"It may have been carried out: repeat it with id={call.id!r}, and nothing more is charged.")
        raise error

    def _error(self) -> CounterpointError:
        if self.status is None:
            return ServiceFailed(
                f"the service could not be reached ({self.content}); check its address, and that it is running"
            )
        if not isinstance(self.content, dict):
            return ServiceFailed(f"the service answered with status {self.status} and no reason; check its address")
        return error_of({"status": self.status, **self.content})


NOT_SERVED = {
    "Session.acting_as": "a key belongs to one principal; connect with another key to act as another",
    "Session.close": "close the connection; a session stays open for everyone who has a grant in it",
    "Session.data_closed": "ask or launch: while the data are closed, both say so with DataFailed",
    "Session.page_of_certificate": "read certificate(), which fetches every page",
    "Session.page_of_children": "read handles and given, which fetch every page",
    "Session.refresh": "say service.refresh(data_set), which reads the configured rows anew",
    "Session.rehearse": "rehearse on made-up rows of the same declaration, in a local session",
}
"""What is `NotAllowed` over a connection, and what to do instead."""
ARGUMENTS = {
    "launch(a mechanism or a composite of your own, or Concurrent)": "a service launches what is on its list alone",
    "ask(sql(text))": "say session.sql(text)",
    "delegate(rule), grant(rule)": "a service delegates budgets; rules are made by the custodian, in the ledger",
    "grant(...) in a delegated session": "a service grants out of a data set's whole budget",
}
"""What a served call does not take, and what to do instead."""


def not_served(kind: str, name: str) -> NoReturn:
    """Refuse a name in the table with its alternative; any other unknown name is an AttributeError."""
    instead = NOT_SERVED.get(f"{kind}.{name}")
    if instead is None:
        raise AttributeError(f"a served {kind.lower()} has no attribute {name!r}")
    raise NotAllowed(f"a served {kind.lower()} has no {name}: {instead}")

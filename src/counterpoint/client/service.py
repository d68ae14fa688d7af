"""A service as the client sees it: sessions to work in, and streams and live tables to append to."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from counterpoint.client import codec
from counterpoint.client.calls import Call, Calls, Remote, Runner, all_of, served
from counterpoint.client.people import RemotePeople
from counterpoint.client.session import RemoteSession, read_version
from counterpoint.errors import InvalidRequest, NotAllowed
from counterpoint.session.versions import DataVersion
from counterpoint.wire.problems import unknown


class Service(Remote):
    """What a connection offers, whether it waits or is awaited."""

    @abstractmethod
    def run(self, calls: Calls[Any]) -> Any:
        """The result of these calls, or a coroutine that gives it."""

    @abstractmethod
    def follow(self, path: str, seconds: float | None) -> Any:
        """The events that are sent there, to be iterated over."""

    @property
    def _service(self) -> Runner:  # type: ignore[override]  # a connection runs its own calls
        return self

    @served
    def session(self, name: str) -> Calls[RemoteSession]:
        """The session of a data set, or the session of this id.

        For a custodian or an auditor a data set's name is its whole session, for an analyst the one that was granted
        there. With several valid grants, give the id of one.
        """
        if "." in name:
            response = yield Call("GET", f"/v1/sessions/{name}")
            return RemoteSession(self, response["session"])
        listed = yield Call("GET", "/v1/data-sets")
        entry = next((one for one in listed if one["data_set"] == name), None)
        if entry is None:
            raise unknown(name)
        return RemoteSession(self, _chosen(name, entry))

    @property
    @served
    def sessions(self) -> Calls[tuple[RemoteSession, ...]]:
        """The sessions that this principal may work in."""
        listed = yield from all_of("/v1/sessions")
        return tuple(RemoteSession(self, one["session"]) for one in listed)

    @property
    @served
    def data_sets(self) -> Calls[tuple[str, ...]]:
        """The data sets that this principal may use."""
        listed = yield Call("GET", "/v1/data-sets")
        return tuple(one["data_set"] for one in listed)

    @served
    def describe(self, data_set: str) -> Calls[str]:
        """The declaration of a data set and its protected unit; everyone with a grant there may read it."""
        return str((yield Call("GET", f"/v1/data-sets/{_one_step(data_set)}"))["description"])

    @served
    def verify(self, data_set: str) -> Calls[bool]:
        """Let the service verify the record of a data set; for custodians and auditors."""
        return bool((yield Call("POST", f"/v1/data-sets/{_one_step(data_set)}/verification"))["holds"])

    @served
    def versions(self, data_set: str) -> Calls[tuple[DataVersion, ...]]:
        """The versions of a data set, in order; for analysts, their numbers and times."""
        listed = yield Call("GET", f"/v1/data-sets/{_one_step(data_set)}/versions")
        return tuple(read_version(one) for one in listed)

    @served
    def refresh(
        self, data_set: str, *, note: str = "", keep: bool = False, id: str | None = None
    ) -> Calls[DataVersion]:
        """Make the rows that the service is configured for, read anew, the next version; for custodians.

        With `keep`, handles of the version before go on answering from its rows until the service stops. The same `id`
        does it once.
        """
        body = {"note": note, "keep": keep}
        path = f"/v1/data-sets/{_one_step(data_set)}/versions"
        return read_version((yield Call("POST", path, body, codec.request_id(id))))

    @property
    def people(self) -> RemotePeople:
        """The people of the service, for a custodian to look after."""
        return RemotePeople(self)

    def stream(self, name: str) -> "RemoteStream":
        """The stream of a data set, for a producer to append to."""
        return RemoteStream(self, name)

    def table(self, name: str) -> "RemoteTable":
        """The live table of a data set, for a producer to put rows into and to remove them."""
        return RemoteTable(self, name)


class RemoteStream(Remote):
    """A served stream, which a producer appends to and reads nothing of."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = _one_step(name)

    @served
    def append(self, value: object, unit: int | str | None = None, *, id: str | None = None) -> Calls[None]:
        """Append one item; at user level `unit` names the unit that owns it, or a field of the record does."""
        yield from self._extended([value], None if unit is None else [unit], id)

    @served
    def extend(
        self, values: Iterable[object], units: Iterable[int | str] | None = None, *, id: str | None = None
    ) -> Calls[None]:
        """Append items in this order, all of them or none; the same `id` adds them once."""
        yield from self._extended(list(values), None if units is None else list(units), id)

    def _extended(self, items: list[object], owners: list[int | str] | None, id: str | None) -> Calls[None]:
        body = {"items": [codec.encode_item(item) for item in items], "owners": owners}
        yield Call("POST", f"/v1/data-sets/{self._name}/items", body, codec.request_id(id))

    def __repr__(self) -> str:
        return f"RemoteStream({self._name!r})"


class RemoteTable(Remote):
    """A served live table, which a producer puts rows into and reads nothing of."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = _one_step(name)

    @served
    def put(self, rows: object, *, id: str | None = None) -> Calls[None]:
        """Put one row, or a list of rows in this order, all of them or none; the same `id` puts them once."""
        yield Call("POST", f"/v1/data-sets/{self._name}/rows", _rows(rows), codec.request_id(id))

    @served
    def remove(self, /, *rows: object, id: str | None = None, **names: object) -> Calls[None]:
        """Remove a row by its unit and key, as in `remove(person="ann", row=1)`, or a list of rows, as in `put`."""
        if len(rows) > 1 or (rows and names):
            raise InvalidRequest("give one list of rows to remove, or name one row by its unit and key")
        listed = rows[0] if rows else names
        yield Call("POST", f"/v1/data-sets/{self._name}/removals", _rows(listed), codec.request_id(id))

    def __repr__(self) -> str:
        return f"RemoteTable({self._name!r})"


def _rows(given: object) -> dict[str, Any]:
    """The JSON of one row or of a list of rows."""
    listed = [given] if isinstance(given, Mapping) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(row, Mapping) for row in listed):
        raise InvalidRequest("a row is a mapping with the unit, the key and the columns; give one, or a list of them")
    return {"rows": [codec.encode_item(row) for row in listed]}


def _chosen(name: str, entry: dict[str, Any]) -> str:
    """The session that the name of a data set stands for."""
    if "session" in entry:
        return str(entry["session"])
    granted, standing = entry.get("sessions", []), entry.get("standing", [])
    which = standing or granted
    if not which:
        raise NotAllowed(f"{name!r} has no session for this key: a producer appends, as in service.stream({name!r})")
    if len(which) > 1:
        raise NotAllowed(f"several sessions were granted in {name!r}: say which one, {', '.join(map(repr, which))}")
    return str(which[0])


def _one_step(name: str) -> str:
    """A name as a step of an address."""
    if not name or not all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name):
        raise InvalidRequest("a data set is named by letters, digits, - and _")
    return name

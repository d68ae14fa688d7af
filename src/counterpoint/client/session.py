"""A served session and its partitions: the calls of a local session, made to a service.

Each method is written once, as a generator of calls (`calls.py`). Over a connection from `connect` it waits for its
result; over one from `connect_async` it is awaited, and so are properties.
"""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NoReturn, Unpack

from counterpoint.client import codec
from counterpoint.client.calls import Call, Calls, Remote, Runner, not_served, served
from counterpoint.client.handle import PostprocessedHandle, RemoteHandle, around, begun, not_covered
from counterpoint.composition.rule import Remaining, Reserved, Rule
from counterpoint.display.markup import Picture
from counterpoint.display.timeline_svg import TimelinePicture
from counterpoint.errors import InvalidParameter, NotAllowed, shown
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.state import HistoryEntry, Path, mechanism_names
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.numbers import Exact, Number
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.queries.request import Request
from counterpoint.session.charges import Losses
from counterpoint.session.handle import Quote
from counterpoint.session.questions import GivenTerms, presented, terms, wanted_error
from counterpoint.session.versions import DataVersion
from counterpoint.sql_requests.select import sql
from counterpoint.wire.documents import (
    read_answer,
    read_certificate,
    read_fact,
    read_loss,
    read_quote,
    read_receipt,
    read_remaining,
    read_reserved,
    read_rule,
    read_timeline,
)
from counterpoint.wire.problems import NotFound, SessionId
from counterpoint.wire.requests import MOST_EVENTS


class RemoteSession(Remote):
    """A session that lives in a service; the calls of a local `Session`."""

    def __init__(self, service: Runner, id: str) -> None:
        self._service = service
        self._id = SessionId.read(id)

    @property
    def id(self) -> str:
        """How the service calls this session: `service.session(id)` finds it again."""
        return str(self._id)

    @property
    def path(self) -> Path:
        """Where it lives in its data set."""
        return self._id.path

    @property
    def _url(self) -> str:
        return f"/v1/sessions/{self._id}"

    @property
    @served
    def rule(self) -> Calls[Rule]:
        """The rule that decides."""
        return read_rule((yield Call("GET", self._url)))

    @property
    @served
    def loss(self) -> Calls[Loss]:
        """The loss so far; reading it changes nothing."""
        return read_loss((yield Call("GET", self._url))["loss"])

    @property
    @served
    def remaining(self) -> Calls[Remaining]:
        """The largest further PureDP that fits, and the delta that is left; for anything else, `would_cost`."""
        return read_remaining((yield Call("GET", self._url)))

    @property
    @served
    def made_up(self) -> Calls[bool]:
        """Whether the rows and answers are made up."""
        return bool((yield Call("GET", self._url))["made_up"])

    @served
    def loss_at(self, *, distance: int) -> Calls[Loss]:
        """What has been lost between data that differ in `distance` units, at a distance fixed in advance."""
        query = {"distance": whole(distance, 0, "distance")}
        return read_loss((yield Call("GET", f"{self._url}/loss", query=query)))

    @property
    @served
    def reserved(self) -> Calls[tuple[Reserved, ...]]:
        """What was delegated out of this session and is counted by `loss` in full, used or not."""
        said = yield Call("GET", f"{self._url}/loss", query={"distance": 0})
        return tuple(read_reserved(each) for each in said["reserved"])

    @served
    def epsilon_for(self, request: object, **on: Unpack[GivenTerms]) -> Calls[Exact]:
        """The least epsilon of four digits at which an answer keeps this `error` or `rank_error`; nothing happens."""
        wanted_error(on)
        body = {"request": codec.encode_request(request), **codec.encode_terms(on)}
        return Exact((yield Call("POST", f"{self._url}/epsilons", body))["exact"])

    @served
    def would_cost(
        self,
        mechanism: Mechanism | object,
        *,
        of: str | Sequence[str] | Request | None = None,
        **on: Unpack[GivenTerms],
    ) -> Calls[Quote]:
        """What this launch would cost, or what `ask` would launch on these terms; nothing happens."""
        if isinstance(mechanism, Mechanism | type):
            if on:
                heads = ", ".join(f"{name}=" for name in on)
                raise InvalidParameter(f"{heads} goes with a request; a mechanism has a price")
            return (yield from self._quoted(mechanism, codec.encode_launch(mechanism, of)))
        terms(**on)
        body = {
            "request": codec.encode_request(mechanism),
            "of": codec.encode_followed(of),
            **codec.encode_terms(on),
        }
        return read_quote((yield Call("POST", f"{self._url}/quotes", body)))

    def _quoted(self, mechanism: object, body: dict[str, Any]) -> Calls[Quote]:
        """What a launch would cost; behind postprocessors it costs the same, if the claim outlives them."""
        quoted = read_quote((yield Call("POST", f"{self._url}/quotes", body)))
        if not isinstance(mechanism, Postprocessed) or quoted.mechanism is None:
            return quoted
        whole = around(mechanism, quoted.mechanism)
        refused = not_covered(whole.claim, read_rule((yield Call("GET", self._url))))
        if refused is None:
            return Quote(whole.claim.loss, quoted.after, quoted.refusal, whole)
        return Quote(whole.claim.loss, None, f"{type(refused).__name__}: {refused}", whole)

    @served
    def ask(self, request: object, *, id: str | None = None, **on: Unpack[GivenTerms]) -> Calls[Any]:
        """Launch what answers this request, and ask it once; the answer is the one that a local session gives."""
        checked = terms(**on)
        body = {"request": codec.encode_request(request), **codec.encode_terms(on)}
        response = yield Call("POST", f"{self._url}/questions", body, codec.request_id(id))
        return presented(request, read_answer(response), checked.suppress)

    @served
    def sql(self, text: str, *, id: str | None = None, **on: Unpack[GivenTerms]) -> Calls[Any]:
        """Ask what a SELECT of aggregates says, on the terms of `ask`."""
        query, checked = sql(text), terms(**on)
        response = yield Call(
            "POST", f"{self._url}/sql", {"text": text, **codec.encode_terms(on)}, codec.request_id(id)
        )
        return presented(query, read_answer(response), checked.suppress)

    @served
    def launch(
        self,
        mechanism: Mechanism,
        *,
        of: str | Sequence[str] | Request | None = None,
        id: str | None = None,
    ) -> Calls[RemoteHandle]:
        """Pay for a mechanism and start it; or `BudgetExceeded`, `NotCovered` or `RelationMismatch`, for free."""
        body = codec.encode_launch(mechanism, of)
        if isinstance(mechanism, Postprocessed):
            yield from self._must_be_covered(mechanism, body)
        response = yield Call("POST", f"{self._url}/launches", body, codec.request_id(id))
        if isinstance(mechanism, Postprocessed):
            return PostprocessedHandle(self._service, response, mechanism)
        return RemoteHandle(self._service, response)

    def _must_be_covered(self, mechanism: Postprocessed, body: dict[str, Any]) -> Calls[None]:
        """Refuse what a local session would not launch behind a postprocessor, before anything is paid."""
        begun(mechanism, halted=False)  # a postprocessor that cannot start is found out for free
        fitted = read_quote((yield Call("POST", f"{self._url}/quotes", body))).mechanism
        assert fitted is not None
        rule = read_rule((yield Call("GET", self._url)))
        refused = not_covered(around(mechanism, fitted).claim, rule)
        if refused is not None:
            raise refused

    @served
    def delegate(
        self,
        within: Loss,
        *,
        delta: Number | None = None,
        sampled: Number | None = None,
        id: str | None = None,
    ) -> "Calls[RemoteSession]":
        """A session inside this one with a budget of its own, charged here at once; what it leaves stays reserved."""
        body = {
            "within": codec.encode_loss(within),
            "delta": _number(delta, "delta"),
            "sampled": _number(sampled, "sampled"),
        }
        response = yield Call("POST", f"{self._url}/delegations", body, codec.request_id(id))
        return RemoteSession(self._service, response["session"])

    @served
    def charge(
        self, loss: Losses, what: str, *, unit: str, id: str, delta: Number | None = None
    ) -> Calls[RemoteHandle]:
        """Charge a release that was made with another tool; its loss is declared, not derived."""
        body = _charge(loss, what, unit, delta)
        response = yield Call("POST", f"{self._url}/charges", body, codec.request_id(id))
        return RemoteHandle(self._service, response)

    @served
    def reserve(
        self, loss: Losses, what: str, *, unit: str, id: str, delta: Number | None = None
    ) -> "Calls[RemoteReservation]":
        """Set a loss aside for a release that is still to be made; `settle` it with what it really cost."""
        body = _charge(loss, what, unit, delta)
        response = yield Call("POST", f"{self._url}/reservations", body, codec.request_id(id))
        return RemoteReservation(self._service, self._url, body, response)

    @served
    def would_admit(self, loss: Loss) -> Calls[int]:
        """How many launches of this loss the budget admits, one after another; nothing happens."""
        response = yield Call("POST", f"{self._url}/admissions", {"loss": codec.encode_loss(loss)})
        return int(response["admits"])

    @served
    def partition(
        self,
        by: str,
        k: int = 1,
        *,
        within: Loss | Sequence[Loss],
        delta_total: Number | None = None,
        id: str | None = None,
    ) -> "Calls[RemotePartition]":
        """Sub-sessions for the parts of the data, each with the budget `within`; charges k of these at once."""
        each = list(map(codec.encode_loss, within)) if isinstance(within, list | tuple) else codec.encode_loss(within)
        body = {"by": by, "k": k, "within": each, "delta_total": _number(delta_total, "delta_total")}
        response = yield Call("POST", f"{self._url}/partitions", body, codec.request_id(id))
        return RemotePartition(self._service, response)

    @served
    def grant(
        self,
        to: str,
        within: Loss,
        *,
        until: datetime | None = None,
        mechanisms: Sequence[type[Mechanism]] | None = None,
        delta: Number | None = None,
        sampled: Number | None = None,
        id: str | None = None,
    ) -> "Calls[RemoteSession]":
        """Delegate a budget to a principal: the session in which they, and no other principal, launch and ask."""
        names = mechanism_names(mechanisms)
        body = {
            "to": to,
            "within": codec.encode_loss(within),
            "until": None if until is None else until.isoformat(),
            "mechanisms": None if names is None else list(names),
            "delta": _number(delta, "delta"),
            "sampled": _number(sampled, "sampled"),
        }
        response = yield Call("POST", self._grants, body, codec.request_id(id))
        return RemoteSession(self._service, response["session"])

    @served
    def revoke(self, granted: "RemoteSession") -> Calls[None]:
        """Take back a granted session: it launches and answers no more; its charge stays."""
        yield Call("DELETE", f"{self._grants}/{granted.id}")

    @served
    def recount(self, granted: "RemoteSession") -> Calls[None]:
        """Return what a revoked grant has left unused, where a theorem allows it."""
        yield Call("POST", f"{self._grants}/{granted.id}/recount")

    @served
    def reopen(self) -> Calls[None]:
        """Reopen the data after `DataFailed`; for custodians, once the service's log has been read."""
        if self._id.path:
            raise NotAllowed("data are reopened through the session of the whole data set")
        yield Call("POST", f"/v1/data-sets/{self._id.data_set}/reopening")

    @property
    @served
    def versions(self) -> Calls[tuple[DataVersion, ...]]:
        """The versions of the data, in order; for analysts, their numbers and times."""
        listed = yield Call("GET", f"/v1/data-sets/{self._id.data_set}/versions")
        return tuple(read_version(one) for one in listed)

    @property
    @served
    def data_version(self) -> Calls[int]:
        """The number of the version that is launched on here."""
        return int((yield Call("GET", self._url))["data_version"])

    @property
    def _grants(self) -> str:
        if self._id.path:
            raise NotAllowed("a service grants out of a data set's whole budget: use the session of the data set")
        return f"/v1/data-sets/{self._id.data_set}/grants"

    @served
    def certificate(self) -> Calls[Certificate]:
        """Why the loss is what it is: the rule's derivation, on what was launched."""
        return read_certificate((yield from self._pages("/certificate", {})))

    @served
    def record(self) -> Calls[list[str]]:
        """The public record of the data set as JSON lines; for custodians and auditors."""
        text: str = yield Call("GET", f"/v1/data-sets/{self._id.data_set}/record")
        return text.splitlines()

    @served
    def plot(self, by: str = "order") -> Calls[Picture]:
        """The session as a timeline, drawn here from what the service sends; `by="time"` places events by time."""
        if by not in ("order", "time"):
            raise InvalidParameter(f"a session is drawn by='order' or by='time', not by={shown(by)}")
        pages = yield from self._pages("/timeline", {"by": by, "limit": MOST_EVENTS})
        return TimelinePicture(read_timeline(pages))

    def events(self, seconds: float | None = None) -> Any:
        """Changes of this session as they happen: `LossChanged` and `ItemsArrived`, first as they are now.

        An iterator, over an asynchronous connection an asynchronous one (`async for`). It ends after `seconds`,
        or never; a lost connection is made again.
        """
        return self._service.follow(f"{self._url}/events", seconds)

    @property
    @served
    def history(self) -> Calls[tuple[HistoryEntry, ...]]:
        """What has been done here and below, in order; public facts only, no answers."""
        pages = yield from self._pages("/history", {})
        return tuple(read_fact(fact) for page in pages for fact in page["facts"])

    @served
    def receipt(self, id: str) -> Calls[tuple[Signed, Disclosure]]:
        """A signed receipt for the answer to the request with this id, and what opens its answer to others."""
        return read_receipt((yield Call("GET", f"{self._url}/receipts", query={"id": id})))

    @property
    @served
    def handles(self) -> Calls[tuple[RemoteHandle, ...]]:
        """What was launched here, in order; what was delegated or parted is in `given`."""
        pages = yield from self._pages("", {})
        return tuple(RemoteHandle(self._service, one) for response in pages for one in response["handles"])

    @property
    @served
    def given(self) -> "Calls[tuple[RemoteSession | RemotePartition, ...]]":
        """What was delegated or partitioned here, in order: reserved, whether it is used or not."""
        pages = yield from self._pages("", {})
        found = (_placed(self._service, one) for response in pages for one in response["given"])
        return tuple(one for one in found if not isinstance(one, RemoteHandle))

    def _pages(self, end: str, query: dict[str, int | str]) -> Calls[list[dict[str, Any]]]:
        """Every page of a list of this session."""
        pages: list[dict[str, Any]] = []
        after: int | None = 0
        while after is not None:
            pages.append((yield Call("GET", f"{self._url}{end}", query={**query, "after": after})))
            after = pages[-1]["next"]
        return pages

    @served
    def at(self, path: Path) -> "Calls[RemoteHandle | RemoteSession | RemotePartition | None]":
        """What lives at a path (`handle.path`) at or below this session; None if nothing does."""
        path = tuple(path)
        if path[: len(self.path)] != self.path:
            return None
        try:
            response = yield Call("GET", f"/v1/sessions/{SessionId(self._id.data_set, path)}/place")
        except NotFound:
            return None
        return _placed(self._service, response)

    def __getattr__(self, name: str) -> NoReturn:
        not_served("Session", name)

    def __repr__(self) -> str:
        return f"RemoteSession({self.id!r})"


class RemoteReservation(Remote):
    """What was set aside for a release that is still to be made; `settle` charges what it cost, once."""

    def __init__(self, service: Runner, url: str, body: dict[str, Any], response: dict[str, Any]) -> None:
        self._service, self._url, self._body, self._id = service, url, body, response["id"]
        self.loss = read_loss(response["reserved"])

    @served
    def settle(self, loss: Losses, *, delta: Number | None = None) -> Calls[RemoteHandle]:
        """Charge what the release cost, at most what was set aside, and return the rest where a theorem allows it."""
        body = {"reserved": self._body, "loss": codec.encode_losses(loss), "delta": _number(delta, "delta")}
        response = yield Call("POST", f"{self._url}/settlements", body, codec.request_id(self._id))
        return RemoteHandle(self._service, response)

    def __getattr__(self, name: str) -> NoReturn:
        not_served("Reservation", name)

    def __repr__(self) -> str:
        return f"RemoteReservation({self.loss!r})"


def _charge(loss: Losses, what: str, unit: str, delta: Number | None) -> dict[str, Any]:
    """The body of a charge or a reservation."""
    return {"loss": codec.encode_losses(loss), "what": what, "unit": unit, "delta": _number(delta, "delta")}


class RemotePartition(Remote):
    """The parts of a served session's data, each a session of its own: `parts["CA"].launch(...)`."""

    def __init__(self, service: Runner, response: dict[str, Any]) -> None:
        each = response["within"]
        self._service = service
        self._id = SessionId.read(response["partition"])
        self._by: str = response["by"]
        self.loss = read_loss(response["charged"])
        self.within = tuple(map(read_loss, each)) if isinstance(each, list) else read_loss(each)

    @served
    def __getitem__(self, key: str | int | float | bool | Fraction) -> Calls[RemoteSession]:
        """The part where the data has this value; a part that was never looked at before may cost its delta."""
        return (yield from self._part(key, None))

    @served
    def part(self, key: str | int | float | bool | Fraction, *, within: Loss) -> Calls[RemoteSession]:
        """The same part with this budget, if it is new: one that finds its place among the declared losses."""
        return (yield from self._part(key, codec.encode_loss(within)))

    def _part(self, key: object, within: dict[str, str] | None) -> Calls[RemoteSession]:
        body = {"key": codec.encode_key(key), "within": within}
        response = yield Call("POST", f"/v1/sessions/{self._id}/parts", body)
        return RemoteSession(self._service, response["session"])

    def __iter__(self) -> NoReturn:
        raise NotAllowed(f"the parts by {self._by!r} are not read off the data: name them, as in parts[key]")

    def __getattr__(self, name: str) -> NoReturn:
        not_served("Partition", name)

    def __repr__(self) -> str:
        return f"RemotePartition(by {self._by!r}, each within {self.within!r})"


def _placed(service: Runner, response: dict[str, Any]) -> RemoteHandle | RemoteSession | RemotePartition:
    """The session, handle or partition that a response describes."""
    if "handle" in response:
        return RemoteHandle(service, response)
    return (
        RemotePartition(service, response) if "partition" in response else RemoteSession(service, response["session"])
    )


def _number(given: Number | None, what: str) -> str | None:
    return None if given is None else codec.encode_number(given, what)


def read_version(said: dict[str, Any]) -> DataVersion:
    """A version of the data, as far as this key sees it; its declaration in words."""
    about = {name: said[name] for name in ("fingerprint", "who", "note") if name in said}
    return DataVersion(said["version"], said["at"], words=said.get("declared", ""), **about)

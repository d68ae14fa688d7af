"""What a service says of values, as JSON, and how a client reads the same values back.

Each value has one document. `x_json` writes it and `read_x` reads it, side by side, so that both ends agree. A document
has plain numbers for people and, under `exact`, one text in the library's canonical encoding, which alone is read back.
Of an answer that text is an `AnswerDocument`: everything that the analyst's object is made of, encoded once.

>>> import counterpoint as cp
>>> document = loss_json(cp.PureDP("1/10"))
>>> document
{'measure': 'PureDP', 'epsilon': 0.1, 'text': 'PureDP(0.1)', 'exact': '{"type":"PureDP/1","epsilon":"1/10"}'}
>>> read_loss(document)
PureDP(0.1)
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from counterpoint.answers.provenance import Provenance, Reason
from counterpoint.composition.rule import Remaining, Reserved, Rule
from counterpoint.display.timeline import Mark, Timeline
from counterpoint.encoding import Plain, Value, decode, encode, plain_number
from counterpoint.errors import NotAllowed, NotCovered
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.state import HistoryEntry
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Exact
from counterpoint.privacy.certificates import Certificate
from counterpoint.queries.request import PreparedQuery
from counterpoint.session.expected import Expected
from counterpoint.session.handle import Quote, Released
from counterpoint.wire.problems import SessionId

LARGEST = sys.float_info.max
"""The largest float."""

T = TypeVar("T")


class AnswerDocument(Value, frozen=True):
    """The answer to a question, exactly: what was released, by which mechanism, to which request, and why that one."""

    mechanism: Mechanism
    prepared: Plain
    released: Plain
    compared: tuple[Mechanism, ...]
    wanted: str | None
    made_up: bool

    @classmethod
    def of(cls, provenance: Provenance) -> "AnswerDocument":
        """The document of an answer with this provenance."""
        reason = provenance.reason
        return cls(
            provenance.mechanism,
            provenance.prepared,
            provenance.released,
            reason.compared,
            reason.wanted,
            provenance.made_up,
        )

    def provenance(self) -> Provenance:
        """The provenance that the analyst's answer is made of, by `answers.present`."""
        assert isinstance(self.prepared, PreparedQuery)
        reason = Reason(self.compared, self.wanted)
        return Provenance(self.mechanism, self.prepared, self.released, reason, self.made_up)


class ReleasedDocument(Value, frozen=True):
    """The answer of a launched mechanism, exactly, with what gives it units: the request, or else a grid."""

    released: Plain
    prepared: Plain
    grid: Fraction
    made_up: bool


def answer_json(answer: object, provenance: Provenance) -> dict[str, Any]:
    """The answer to a question with its error at 95 % where it states one, its price, and how it came about."""
    return {
        "value": plain(answer),
        **_with_error(answer),
        "units": provenance.prepared.measured_in,
        "cost": _described(provenance.mechanism.claim.loss, "measure"),
        "mechanism": _described(provenance.mechanism, "mechanism"),
        "why": provenance.reason.text(provenance.mechanism, provenance.asked),
        "made_up": provenance.made_up,
        "exact": _exact(AnswerDocument.of(provenance)),
    }


def read_answer(document: dict[str, Any]) -> Provenance:
    """What a question's answer is made of."""
    return _read(document["exact"], AnswerDocument).provenance()


def released_json(released: Released) -> dict[str, Any]:
    """The answer of a launched mechanism, in the request's units."""
    return {"value": plain(released.in_units()), **raw_json(released)}


def raw_json(released: Released) -> dict[str, Any]:
    """The answer of a launched mechanism without its value in units, which need not exist.

    A postprocessor may ask with a public part that does not go with the request.
    """
    document = ReleasedDocument(released.answer, released.prepared, released.grid, released.made_up)
    return {"made_up": released.made_up, "exact": _exact(document)}


def read_released(document: dict[str, Any]) -> Released:
    """The answer of a launched mechanism."""
    found = _read(document["exact"], ReleasedDocument)
    assert found.prepared is None or isinstance(found.prepared, PreparedQuery)
    return Released(found.released, found.prepared, found.grid, found.made_up)


def prepared_json(prepared: PreparedQuery) -> dict[str, Any]:
    """The public facts of a request: its shape, how far a unit moves it, and the grid of its integers."""
    return {
        "numbers": prepared.width,
        "grid": plain_number(prepared.grid),
        "sensitivity": prepared.sensitivity,
        "units": prepared.measured_in,
        "exact": _exact(prepared),
    }


def read_prepared(document: dict[str, Any]) -> PreparedQuery:
    """The public facts of a request."""
    found: object = _read(document["exact"], Plain)  # type: ignore[arg-type]  # plain data is read by its tags
    assert isinstance(found, PreparedQuery)
    return found


def loss_json(loss: Loss) -> dict[str, Any]:
    """A loss: its measure, its numbers, and its repr."""
    return {**_described(loss, "measure"), "exact": _exact(loss)}


def read_loss(document: dict[str, Any]) -> Loss:
    """A loss."""
    return _read(document["exact"], Loss)  # type: ignore[type-abstract]  # a family is read by its tags


def reserved_json(reserved: Reserved) -> dict[str, Any]:
    """A delegated session, and how much of its charge its launches have used."""
    return {
        "path": list(reserved.path),
        "charged": loss_json(reserved.charged),
        "used": loss_json(reserved.used),
    }


def read_reserved(document: dict[str, Any]) -> Reserved:
    """A delegated session with its charge."""
    return Reserved(tuple(document["path"]), read_loss(document["charged"]), read_loss(document["used"]))


def mechanism_json(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism: its class, its plain parameters, and its repr."""
    return {**_described(mechanism, "mechanism"), "exact": _exact(mechanism)}


def read_mechanism(document: dict[str, Any]) -> Mechanism:
    """A mechanism."""
    return _read(document["exact"], Mechanism)  # type: ignore[type-abstract]


def rule_json(rule: Rule) -> dict[str, Any]:
    """The rule of a session."""
    return {"rule": repr(rule), "exact": {"rule": _exact(rule)}}


def read_rule(document: dict[str, Any]) -> Rule:
    """The rule of a session."""
    return _read(document["exact"]["rule"], Rule)  # type: ignore[type-abstract]


def remaining_json(left: Remaining) -> dict[str, Any]:
    """The rest of a budget."""
    exact = {"epsilon": plain_number(left.epsilon), "delta": plain_number(left.delta)}
    return {"epsilon": plain(left.epsilon), "delta": plain(left.delta), "exact": exact}


def read_remaining(document: dict[str, Any]) -> Remaining:
    """The rest of a session's budget; `NotAllowed` if the session has none."""
    left = document["remaining"]
    if left is None:
        raise NotAllowed(document["no_budget"])
    return Remaining(Exact(left["exact"]["epsilon"]), Exact(left["exact"]["delta"]))


def quote_json(quoted: Quote) -> dict[str, Any]:
    """The price of a launch."""
    return {
        "cost": loss_json(quoted.cost),
        "after": None if quoted.after is None else loss_json(quoted.after),
        "fits": quoted.fits,
        "refusal": quoted.refusal,
        "mechanism": None if quoted.mechanism is None else mechanism_json(quoted.mechanism),
        "expected": None if quoted.expected is None else expected_json(quoted.expected),
    }


def expected_json(expected: Expected) -> dict[str, Any]:
    """What an answer will be worth, and what other prices would buy."""
    return {
        expected.what: plain(expected.within),
        "probability": plain(expected.probability),
        "units": expected.units,
        "prices": [{"cost": loss_json(loss), expected.what: plain(within)} for loss, within in expected.prices],
        "exact": _exact(expected),
    }


def read_quote(document: dict[str, Any]) -> Quote:
    """The price of a launch."""
    after, launched = document["after"], document["mechanism"]
    return Quote(
        read_loss(document["cost"]),
        None if after is None else read_loss(after),
        document["refusal"],
        None if launched is None else read_mechanism(launched),
        None if document["expected"] is None else _read(document["expected"]["exact"], Expected),
    )


def fact_json(data_set: str, number: int, fact: HistoryEntry) -> dict[str, Any]:
    """One line of a history."""
    at = str(SessionId(data_set, fact.path))
    return {"number": number, "kind": fact.kind, "at": at, "what": fact.what, "who": fact.who, "when": fact.at}


def read_fact(document: dict[str, Any]) -> HistoryEntry:
    """One line of a history."""
    return HistoryEntry(
        document["kind"], SessionId.read(document["at"]).path, document["what"], document["who"], document["when"]
    )


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """A derivation, as a tree."""
    return {
        "statement": certificate.statement,
        "theorem": certificate.theorem,
        "premises": [certificate_json(premise) for premise in certificate.premises],
    }


def read_certificate(pages: Sequence[dict[str, Any]]) -> Certificate:
    """A derivation, out of all its pages in order."""
    premises = [premise for page in pages for premise in page["premises"]]
    return Certificate(pages[0]["statement"], pages[0]["theorem"], tuple(map(_read_certificate, premises)))


def _read_certificate(document: dict[str, Any]) -> Certificate:
    return Certificate(document["statement"], document["theorem"], tuple(map(_read_certificate, document["premises"])))


def timeline_json(timeline: Timeline, after: int, limit: int) -> dict[str, Any]:
    """The values that the picture of a session is drawn from: the page of `limit` events behind the first `after`.

    A lane is on each page on which something happens in it, with its place among all lanes.
    """
    last = after + limit
    page = replace(timeline, events=timeline.events[after:last], times=timeline.times[after:last], before=after)
    lanes = [
        {"place": place, **asdict(replace(lane, asks=_on(page, lane.asks), refusals=_on(page, lane.refusals)))}
        for place, lane in enumerate(timeline.lanes)
        if any(map(page.has, lane.starts)) or _on(page, lane.asks) or _on(page, lane.refusals)
    ]
    return {
        "name": timeline.name,
        "budget": asdict(timeline.budget),
        "events": [asdict(event) for event in page.events],
        "times": page.times,
        "steps": [asdict(step) for step in timeline.steps if page.has(step.at)],
        "refusals": [asdict(mark) for mark in _on(page, timeline.refusals)],
        "lanes": lanes,
        "next": last if last < len(timeline.events) else None,
    }


def read_timeline(pages: Sequence[dict[str, Any]]) -> Timeline:
    """The values that the picture of a session is drawn from, out of all their pages in order."""

    def whole(name: str) -> list[Any]:
        return [part for page in pages for part in page[name]]

    lanes: dict[int, dict[str, Any]] = {}
    for lane in whole("lanes"):
        found = lanes.setdefault(lane.pop("place"), {**lane, "asks": [], "refusals": []})
        found["asks"] += lane["asks"]
        found["refusals"] += lane["refusals"]
    document = {name: whole(name) for name in ("events", "times", "steps", "refusals")}
    document["lanes"] = [lanes[place] for place in sorted(lanes)]
    return msgspec.convert({"name": pages[0]["name"], "budget": pages[0]["budget"], **document}, Timeline)


def _on(page: Timeline, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if page.has(mark.at))


def receipt_json(id: str, signed: Signed, disclosed: Disclosure) -> dict[str, Any]:
    """The id of a request, and its receipt as `counterpoint/checker.py` reads it from a file."""
    return {"id": id, "receipt": {**signed._asdict(), "disclosed": disclosed._asdict()}}


def read_receipt(document: dict[str, Any]) -> tuple[Signed, Disclosure]:
    """A receipt, and the opening of its answer."""
    found = document["receipt"]
    return Signed(found["receipt"], found["signature"]), Disclosure(**found["disclosed"])


def plain(value: Any) -> Any:
    """As JSON has it: an exact number as the nearest float; null for a table, which has a document of its own.

    A number beyond all floats is null, too: `exact` has it.

    >>> plain((Fraction(1, 4), Fraction(10**400, 3), "CA"))
    [0.25, None, 'CA']
    """
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Fraction):
        return float(value) if -LARGEST <= value <= LARGEST else None
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    return None


def _described(value: Any, head: str) -> dict[str, Any]:
    """A loss or a mechanism for people: its class under `head`, its plain fields, and its repr."""
    fields = {name: plain(field) for name, field in structs.asdict(value).items() if field is not None}
    numbers = {name: field for name, field in fields.items() if isinstance(field, int | float | str | bool | list)}
    return {head: type(value).__name__, **numbers, "text": repr(value)}


def _with_error(answer: object) -> dict[str, Any]:
    table = getattr(answer, "table", None)
    if table is not None:
        return {"table": {head: [plain(value) for value in column] for head, column in table().columns().items()}}
    error = getattr(answer, "error", None)
    try:
        return {} if error is None else {"error": plain(error()), "probability": 0.95}
    except NotCovered:  # the chosen mechanism states no error; the answer has been paid for and is sent
        return {}


def _exact(value: object) -> str:
    return encode(value).decode()


def _read(text: str, kind: type[T]) -> T:
    return decode(text.encode(), kind)

"""Values to and from JSON.

What the client makes of what a service said: the same losses, quotes, answers and facts as in a local session.

What the client says: requests, mechanisms, losses and numbers, exactly, or why they cannot be said.

>>> number(Fraction(1, 3), "epsilon"), option("threshold", (1, 0.5))
('1/3', [1, 0.5])
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from counterpoint.answers.provenance import Provenance, Reason
from counterpoint.composition.rule import Remaining, Rule
from counterpoint.continual.windowed import Windowed
from counterpoint.display.timeline import Timeline
from counterpoint.encoding import Plain, Tagged, decode, plain_number
from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed, shown
from counterpoint.ledger.ledger import made_up
from counterpoint.ledger.state import Fact
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.numbers import Exact, Number
from counterpoint.numbers.exact import exact
from counterpoint.privacy.certificates import Certificate
from counterpoint.queries.request import Prepared, describe_request
from counterpoint.service import wire
from counterpoint.service.problems import SessionId
from counterpoint.session.handle import Quote, Released
from counterpoint.sql_requests.query import SQLQuery

T = TypeVar("T")


def loss_of(said: dict[str, Any]) -> Loss:
    """A loss."""
    return _read(said["exact"], Loss)  # type: ignore[type-abstract]  # a family is read by its tags


def mechanism_of(said: dict[str, Any]) -> Mechanism:
    """A mechanism."""
    return _read(said["exact"], Mechanism)  # type: ignore[type-abstract]


def rule_of(said: dict[str, Any]) -> Rule:
    """The rule of a session."""
    return _read(said["exact"]["rule"], Rule)  # type: ignore[type-abstract]


def remaining_of(said: dict[str, Any]) -> Remaining:
    """What is left of a session's budget; `NotAllowed` if it has none."""
    left = said["remaining"]
    if left is None:
        raise NotAllowed(said["no_budget"])
    return Remaining(Exact(left["exact"]["epsilon"]), Exact(left["exact"]["delta"]))


def quote_of(said: dict[str, Any]) -> Quote:
    """What a launch would cost."""
    after, launched = said["after"], said["mechanism"]
    return Quote(
        loss_of(said["cost"]),
        None if after is None else loss_of(after),
        said["refusal"],
        None if launched is None else mechanism_of(launched),
    )


def provenance_of(said: dict[str, Any]) -> Provenance:
    """What was released to a question, and where it comes from."""
    exact = said["exact"]
    compared: Any = _read(exact["compared"], Plain)  # type: ignore[arg-type]  # plain data is read by what it is
    return Provenance(
        _read(exact["mechanism"], Mechanism),  # type: ignore[type-abstract]
        prepared_of(exact["prepared"]),
        _plain(exact["released"]),
        Reason(compared, exact["wanted"]),
        said["made_up"],
    )


def released_of(said: dict[str, Any]) -> Released:
    """What a launched mechanism answered."""
    exact = said["exact"]
    prepared = None if exact["prepared"] == "null" else prepared_of(exact["prepared"])
    return Released(_plain(exact["released"]), prepared, Fraction(exact["grid"]), said["made_up"])


def prepared_of(text: str) -> Prepared:
    """What is public about a request."""
    found = _plain(text)
    assert isinstance(found, Prepared)
    return found


def certificate_of(said: dict[str, Any]) -> Certificate:
    """A derivation."""
    return Certificate(said["statement"], said["theorem"], tuple(map(certificate_of, said["premises"])))


def timeline_of(said: dict[str, Any]) -> Timeline:
    """What a session is drawn from."""
    return msgspec.convert(said, Timeline)


def fact_of(said: dict[str, Any]) -> Fact:
    """One line of a history."""
    return Fact(said["kind"], SessionId.read(said["at"]).path, said["what"], said["who"], said["when"])


def _plain(text: str) -> Plain:
    return _read(text, Plain)  # type: ignore[arg-type]


def _read(text: str, kind: type[T]) -> T:
    return decode(text.encode(), kind)


def own(id: str | None) -> str:
    """The id of a call: the one that was given, else one that is made up, under which it is sent again."""
    return made_up() if id is None else id


def number(given: Number, what: str) -> str:
    """A number, exactly."""
    return plain_number(exact(given, what))


def request(given: object) -> dict[str, str]:
    """A request."""
    if isinstance(given, SQLQuery):
        raise NotAllowed("a service reads SQL itself: ask with session.sql(text, epsilon=...)")
    if not isinstance(given, Tagged) or isinstance(given, Mechanism | Loss):
        raise InvalidRequest(f"a request is one such as count(where=...) or total(), not {describe_request(given)}")
    return wire.exactly(given, "request")


def mechanism(given: object) -> dict[str, str]:
    """A mechanism."""
    if isinstance(given, type) and issubclass(given, Mechanism):
        name = given.__name__
        raise InvalidParameter(f"{name} is a kind of mechanism: say with which parameters, as in {name}(epsilon=0.1)")
    if not isinstance(given, Mechanism):
        kind = type(given).__name__
        raise InvalidParameter(f"a session launches mechanisms, such as Laplace(epsilon=0.1), not a {kind}")
    return wire.exactly(given, "mechanism")


def launch(given: object, of: "str | Sequence[str] | Tagged | None", last: int | None) -> dict[str, Any]:
    """A launch: of a window its counter and its length, and of postprocessors, which run here, what is behind them."""
    whole = given if last is None or not isinstance(given, Mechanism) else Windowed(given, last)
    inner = innermost(whole) if isinstance(whole, Mechanism) else whole
    if isinstance(inner, Windowed):
        return {"mechanism": mechanism(inner.counter), "of": followed(of), "last": inner.last}
    return {"mechanism": mechanism(inner), "of": followed(of), "last": None}


def innermost(given: Mechanism) -> Mechanism:
    """The mechanism behind all postprocessors: what a service launches."""
    return innermost(given.mechanism) if isinstance(given, Postprocessed) else given


def loss(given: object) -> dict[str, str]:
    """A loss, as a budget or a price."""
    return wire.exactly(given, "measure")


def followed(of: "str | Sequence[str] | Tagged | None") -> Any:
    """What a mechanism follows of a stream's records."""
    if of is None or isinstance(of, str):
        return of
    return request(of) if isinstance(of, Tagged) else list(of)


def terms(on: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords by which an analyst says what an answer may cost, or how far off it may be."""
    said = {name: value for name, value in on.items() if value is not None}
    return {
        name: value if isinstance(value, bool) else loss(value) if name == "loss" else number(value, name)
        for name, value in said.items()
    }


def option(name: str, given: object) -> Any:
    """An option of a mechanism's ask."""
    if isinstance(given, tuple | list):
        return [option(name, part) for part in given]
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, Fraction | Decimal):
        return number(given, name)
    raise NotAllowed(f"{name} is a number, a text or a list of them over the wire, not {shown(given)}")


def key(given: object) -> Any:
    """The key of a part; a rational is said as a number, since a text may be a key as well."""
    return {"number": number(given, "key")} if isinstance(given, Fraction | Decimal) else option("key", given)


def item(given: object) -> Any:
    """An item of a stream: a number, a text, a record of them, or several numbers."""
    if isinstance(given, Mapping):
        return {str(name): item(value) for name, value in given.items()}
    if isinstance(given, date):
        return given.isoformat()
    return option("an item", given)

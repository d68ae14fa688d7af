"""What the client says: requests, mechanisms, losses and numbers, exactly, or why they cannot be said.

>>> number(Fraction(1, 3), "epsilon"), option("threshold", (1, 0.5))
('1/3', [1, 0.5])
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from counterpoint.encoding import Tagged, plain_number
from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed, shown
from counterpoint.ledger.ledger import made_up
from counterpoint.mechanisms.composed.postprocessing import Postprocessed
from counterpoint.mechanisms.counting.windows import Windowed
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact
from counterpoint.privacy.loss import Loss
from counterpoint.service import wire
from counterpoint.session.sql.query import SQLQuery
from counterpoint.sources.source import describe_request


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

"""How the client writes requests, mechanisms, losses, numbers and items; or why they cannot be sent.

They are written exactly: what the service reads is the object that a local session would be given.

>>> encode_number(Fraction(1, 3), "epsilon"), encode_option("threshold", (1, 0.5))
('1/3', [1, 0.5])
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from counterpoint.encoding import Tagged, plain_number
from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed, shown
from counterpoint.ledger.ledger import new_request_id
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact
from counterpoint.queries.request import describe_request
from counterpoint.sql_requests.query import SQLQuery
from counterpoint.wire.requests import encode_exactly


def request_id(id: str | None) -> str:
    """The id of a call: the one that was given, else one that is made up, under which it is sent again."""
    return new_request_id() if id is None else id


def encode_number(given: Number, what: str) -> str:
    """A number, exactly."""
    return plain_number(exact(given, what))


def encode_request(given: object) -> dict[str, str]:
    """A request."""
    if isinstance(given, SQLQuery):
        raise NotAllowed("a service reads SQL itself: ask with session.sql(text, epsilon=...)")
    if not isinstance(given, Tagged) or isinstance(given, Mechanism | Loss):
        raise InvalidRequest(f"a request is one such as count(where=...) or total(), not {describe_request(given)}")
    return encode_exactly(given, "request")


def encode_mechanism(given: object) -> dict[str, str]:
    """A mechanism."""
    if isinstance(given, type) and issubclass(given, Mechanism):
        name = given.__name__
        raise InvalidParameter(f"{name} is a kind of mechanism: say with which parameters, as in {name}(epsilon=0.1)")
    if not isinstance(given, Mechanism):
        kind = type(given).__name__
        raise InvalidParameter(f"a session launches mechanisms, such as Laplace(epsilon=0.1), not a {kind}")
    return encode_exactly(given, "mechanism")


def encode_launch(given: object, of: "str | Sequence[str] | Tagged | None") -> dict[str, Any]:
    """A launch: of the mechanism behind all postprocessors, which run in the client."""
    inner = innermost(given) if isinstance(given, Mechanism) else given
    return {"mechanism": encode_mechanism(inner), "of": encode_followed(of)}


def innermost(given: Mechanism) -> Mechanism:
    """The mechanism behind all postprocessors: what a service launches."""
    return innermost(given.mechanism) if isinstance(given, Postprocessed) else given


def encode_loss(given: object) -> dict[str, str]:
    """A loss, as a budget or a price."""
    return encode_exactly(given, "measure")


def encode_losses(given: object) -> Any:
    """A loss, or a list of losses, each perhaps with how often it occurs."""
    if not isinstance(given, list | tuple):
        return encode_loss(given)
    pairs = (one if isinstance(one, tuple) and len(one) == 2 else (one, 1) for one in given)
    return [{"loss": encode_loss(loss), "times": times} for loss, times in pairs]


def encode_followed(of: "str | Sequence[str] | Tagged | None") -> Any:
    """The part of a stream's records that a mechanism follows."""
    if of is None or isinstance(of, str):
        return of
    return encode_request(of) if isinstance(of, Tagged) else list(of)


def encode_terms(on: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords by which an analyst says what an answer may cost, or how far off it may be."""
    chosen = {name: value for name, value in on.items() if value is not None}
    return {
        name: value if isinstance(value, bool) else encode_loss(value) if name == "loss" else encode_number(value, name)
        for name, value in chosen.items()
    }


def encode_option(name: str, given: object) -> Any:
    """An option of a mechanism's ask."""
    if isinstance(given, tuple | list):
        return [encode_option(name, part) for part in given]
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, Fraction | Decimal):
        return encode_number(given, name)
    raise NotAllowed(f"{name} is a number, a text or a list of them over the wire, not {shown(given)}")


def encode_key(given: object) -> Any:
    """The key of a part; a rational is sent as {"number": ...}, since a text may be a key as well."""
    return (
        {"number": encode_number(given, "key")}
        if isinstance(given, Fraction | Decimal)
        else encode_option("key", given)
    )


def encode_item(given: object) -> Any:
    """An item of a stream: a number, a text, a record of them, or several numbers."""
    if isinstance(given, Mapping):
        return {str(name): encode_item(value) for name, value in given.items()}
    if isinstance(given, date):
        return given.isoformat()
    return encode_option("an item", given)

"""What may be said over the wire: an allow-list of mechanisms, requests and losses, each with its own fields alone.

A mechanism is `{"mechanism": "Laplace", "epsilon": 0.5, "asks": 3}`, a request is
`{"request": "count", "where": "age > 40"}`, a loss `{"measure": "PureDP", "epsilon": 1}`. The fields are those of the
class or function of that name, which reads and checks their values. A field that it does not have is an error, never
ignored. What brings a claim, a relation or code along (`Concurrent`, a composite, a postprocessor) cannot be said.

>>> mechanism({"mechanism": "Laplace", "epsilon": 0.5, "asks": 3})
Laplace(epsilon=0.5, asks=3)
>>> mechanism({"mechanism": "Laplace", "epsilon": 0.5, "ask": 3})
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: Laplace has no field 'ask'; it has epsilon, asks, clamp
"""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import counterpoint as cp
from counterpoint.errors import InvalidRequest, shown
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.loss import Loss

DEPTH = 6
"""How deep what is said may be nested."""
WIDTH = 10_000
"""How many entries a list or an object in it may have."""
LONGEST = 10_000
"""How long a text in it may be."""

MECHANISMS = (
    "AboveThreshold",
    "Counter",
    "Gaussian",
    "Laplace",
    "NoisyMax",
    "PartitionSelection",
    "SparseVector",
    "VectorCounter",
)
REQUESTS = (
    "bounds",
    "count",
    "count_distinct",
    "histogram",
    "keys",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantile",
    "ranks",
    "stdev",
    "sum",
    "top",
    "total",
    "variance",
)
MEASURES = ("ApproxDP", "GaussianDP", "PureDP", "RenyiDP", "tCDP", "zCDP")
SELECT = "select"
"""Several requests at once: `{"request": "select", "by": ..., "asking": {"n": {"request": "count"}, ...}}`."""


def mechanism(said: object) -> Mechanism:
    """The mechanism that was named, with its parameters."""
    made = _made(said, "mechanism", MECHANISMS)
    assert isinstance(made, Mechanism)
    return made


def request(said: object) -> Any:
    """The request that was named; requests may stand in its fields."""
    fields = _object(said, "request")
    if fields.get("request") == SELECT:
        asking = _object(fields.get("asking"), "asking")
        named = {str(name): request(one) for name, one in asking.items()}
        rest = {name: value for name, value in fields.items() if name not in ("request", "asking")}
        return _called(getattr(cp, SELECT), SELECT, {**rest, **named}, open_ended=True)
    return _made(fields, "request", REQUESTS)


def loss(said: object) -> Loss:
    """The loss that was named."""
    made = _made(said, "measure", MEASURES)
    assert isinstance(made, Loss)
    return made


def checked(said: object, depth: int = DEPTH) -> None:
    """Refuse what is nested too deep or too large, before anything is made of it."""
    if depth < 0:
        raise InvalidRequest(f"what was sent is nested deeper than {DEPTH}")
    if isinstance(said, str) and len(said) > LONGEST:
        raise InvalidRequest(f"a text of {len(said)} characters was sent; at most {LONGEST} are read")
    if isinstance(said, list | dict):
        if len(said) > WIDTH:
            raise InvalidRequest(f"a list of {len(said)} entries was sent; at most {WIDTH} are read")
        for part in said.values() if isinstance(said, dict) else said:
            checked(part, depth - 1)


def fields_of(name: str) -> tuple[str, ...]:
    """The fields that may be said of a mechanism, a request or a loss."""
    return tuple(_parameters(name))


@lru_cache(maxsize=256)
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(cp, name)).parameters


def _made(said: object, field: str, allowed: tuple[str, ...]) -> Any:
    fields = dict(_object(said, field))
    name = fields.pop(field, None)
    if name not in allowed:
        raise InvalidRequest(f"{field} is one of {', '.join(allowed)}, not {shown(name)}")
    return _called(getattr(cp, name), name, fields)


def _called(made: Callable[..., Any], name: str, fields: dict[str, Any], *, open_ended: bool = False) -> Any:
    known = _parameters(name)
    unknown = None if open_ended else next((field for field in fields if field not in known), None)
    if unknown is not None:
        raise InvalidRequest(f"{name} has no field {shown(unknown)}; it has {', '.join(known)}")
    needed = [field for field, one in known.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    missing = next((field for field in needed if field not in fields), None)
    if missing is not None:
        raise InvalidRequest(f"{name} needs the field {missing!r}; it has {', '.join(known)}")
    return made(**{field: _value(value) for field, value in fields.items()})


def _value(said: object) -> Any:
    """A plain value; an object is a request inside a request, and a list inside a list is a tuple of keys."""
    if isinstance(said, dict):
        return request(said)
    if isinstance(said, list):
        return [tuple(part) if isinstance(part, list) else part for part in said]
    return said


def _object(said: object, field: str) -> Mapping[str, Any]:
    if not isinstance(said, Mapping):
        raise InvalidRequest(f"{field} is an object such as {{{field!r}: ...}}, not {shown(said)}")
    return said

"""What may be sent to a service: an allow-list of mechanisms, requests and losses, each with its own fields.

A mechanism is `{"mechanism": "Laplace", "epsilon": 0.5, "asks": 3}`, a request is
`{"request": "count", "where": "age > 40"}`, a loss `{"measure": "PureDP", "epsilon": 1}`. The fields are those of the
class or function of that name, which reads and checks their values. An unknown field is an error, never ignored. What
carries a claim, a relation or code (`Concurrent`, a composite of one's own, a postprocessor) is not on the list.

Our own client sends `{"exact": "..."}`: the canonical encoding of a listed mechanism, request or loss, or of the public
part that a postprocessor sends with an ask. Every tag is looked up in the list before anything is built, and the result
must encode to the same bytes, so that an unknown or repeated field is an error here, too.

>>> decode_mechanism({"mechanism": "Laplace", "epsilon": 0.5, "asks": 3})
Laplace(epsilon=0.5, asks=3)
>>> decode_mechanism({"mechanism": "Laplace", "epsilon": 0.5, "ask": 3})
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: Laplace has no field 'ask'; it has epsilon, asks, clamp
>>> decode_mechanism(encode_exactly(cp.Laplace("1/3"), "mechanism")) == cp.Laplace("1/3")
True
"""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

import counterpoint as cp
from counterpoint.encoding import Plain, Tagged, decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed, shown
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Range
from counterpoint.mechanisms.guess_and_check import Guess, LinearGuess
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.noisy_max import Largest
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.queries.compile import LANGUAGE
from counterpoint.queries.request import OnSource
from counterpoint.sources.streams.items import RunningTotal

DEPTH = 6
"""The greatest depth of nesting in a body."""
WIDTH = 10_000
"""The most entries of a list or an object in a body."""
LONGEST = 10_000
"""The longest text in a body."""
LONGEST_EXACT = 2**19
"""How long the exact form of a mechanism, request or loss may be."""
PAGE = 200
"""How many entries of a list are sent at once, at most."""
MOST_EVENTS = 5_000
"""How many events of a timeline are sent at once, at most: each page takes a reading of the whole history."""
EXACT = "exact"
PUBLIC = "public"

MECHANISMS = (
    "AboveThreshold",
    "Counter",
    "Gaussian",
    "GaussianSelection",
    "GuessAndCheck",
    "Laplace",
    "NoisyMax",
    "PartitionSelection",
    "SparseVector",
)
EXACT_MECHANISMS = (*MECHANISMS, "LinearGuessAndCheck", "Sampled")
"""With those that have a mechanism for a parameter, which the plain form has no way to say."""
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
    "share",
    "stdev",
    "sum",
    "top",
    "total",
    "variance",
)
MEASURES = ("ApproxDP", "GaussianDP", "PureDP", "RenyiDP", "SampledGaussianDP", "tCDP", "zCDP")
SELECT = "select"
"""Several requests at once: `{"request": "select", "by": ..., "asking": {"n": {"request": "count"}, ...}}`."""


def named(name: str) -> Any:
    """The public mechanism, request or measure with a listed name."""
    rooms = (cp, cp.mechanisms, cp.measures)
    return getattr(next(room for room in rooms if name in dir(room)), name)


@lru_cache
def _classes(field: str) -> tuple[type[msgspec.Struct], ...]:
    """The classes that a field accepts in exact form; no subclasses."""
    if field == "request":
        rows: Any = LANGUAGE  # each is a struct, which the family does not say
        return (*rows, RunningTotal, OnSource)
    if field == PUBLIC:
        return (Guess, Largest, LinearGuess, Range, Threshold)
    return tuple(named(name) for name in (EXACT_MECHANISMS if field == "mechanism" else MEASURES))


def encode_exactly(value: object, field: str) -> dict[str, str]:
    """The exact form of a mechanism, a request or a measure; `NotAllowed` if its class is not on the list."""
    if type(value) not in _classes(field):
        names = ", ".join(kind.__name__ for kind in _classes(field))
        raise NotAllowed(f"a service takes as {field} one of {names}, not {shown(value, 80)}")
    return {EXACT: encode(value).decode()}


def encode_public(value: Plain) -> dict[str, str]:
    """The exact form of an ask's public part; the service refuses classes that are not on its list."""
    return {EXACT: encode(value).decode()}


def decode_mechanism(sent: object) -> Mechanism:
    """The named mechanism, with its parameters."""
    made = _made(sent, "mechanism", MECHANISMS)
    assert isinstance(made, Mechanism)
    return made


def decode_request(sent: object) -> Any:
    """The named request; its fields may be requests, too."""
    fields = _object(sent, "request")
    if EXACT in fields:
        return _read_exactly(fields, "request")
    if fields.get("request") == SELECT:
        asking = _object(fields.get("asking"), "asking")
        named = {str(name): decode_request(one) for name, one in asking.items()}
        rest = {name: value for name, value in fields.items() if name not in ("request", "asking")}
        if not rest.keys() <= _OF_SELECT or named.keys() & _OF_SELECT:
            raise InvalidRequest(
                f"select has the fields asking, {', '.join(sorted(_OF_SELECT))}; the names in asking differ from these"
            )
        return _called(getattr(cp, SELECT), SELECT, {**rest, **named}, open_ended=True)
    return _made(fields, "request", REQUESTS)


def decode_loss(sent: object) -> Loss:
    """The named loss."""
    made = _made(sent, "measure", MEASURES)
    assert isinstance(made, Loss)
    return made


def decode_losses(sent: object) -> Loss | list[tuple[Loss, int]]:
    """A loss, or a list of losses, each perhaps with how often it occurs.

    >>> once = {"measure": "PureDP", "epsilon": 1}
    >>> decode_losses(once), decode_losses([once, {"loss": once, "times": 3}])
    (PureDP(1), [(PureDP(1), 1), (PureDP(1), 3)])
    """
    if not isinstance(sent, list):
        return decode_loss(sent)
    found = []
    for one in sent:
        times = one.get("times", 1) if isinstance(one, dict) and "loss" in one else 1
        if type(times) is not int:
            raise InvalidRequest("times is a whole number: how often a loss occurs")
        found.append((decode_loss(one["loss"] if isinstance(one, dict) and "loss" in one else one), times))
    return found


def decode_public(sent: object) -> Plain:
    """The public part of an ask: plain data, with only those classes in it that the listed mechanisms are asked with.

    >>> decode_public(encode_public((1, "two", Threshold(3), None)))
    (1, 'two', Threshold(3), None)
    """
    fields = _object(sent, EXACT)
    if EXACT not in fields:
        raise InvalidRequest(f"{PUBLIC} is an object such as {{{EXACT!r}: ...}}")
    made: Plain = _read_exactly(fields, PUBLIC, Plain)
    return made


def check_size(sent: object, depth: int = DEPTH) -> None:
    """Refuse data that is nested too deeply or too large, before anything is built from it."""
    if depth < 0:
        raise InvalidRequest(f"the body is nested deeper than {DEPTH}")
    if isinstance(sent, str):
        _at_most(sent, LONGEST)
    elif isinstance(sent, dict) and isinstance(sent.get(EXACT), str) and len(sent) == 1:
        _at_most(sent[EXACT], LONGEST_EXACT)
    elif isinstance(sent, list | dict):
        if len(sent) > WIDTH:
            raise InvalidRequest(f"a list of {len(sent)} entries was sent; at most {WIDTH} are read")
        for part in sent.values() if isinstance(sent, dict) else sent:
            check_size(part, depth - 1)


def _at_most(text: str, longest: int) -> None:
    if len(text) > longest:
        raise InvalidRequest(f"a text of {len(text)} characters was sent; at most {longest} are read")


def fields_of(name: str) -> tuple[str, ...]:
    """The fields that a mechanism, a request or a loss accepts."""
    return tuple(_parameters(name))


@lru_cache(maxsize=256)
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(named(name)).parameters


def _made(sent: object, field: str, allowed: tuple[str, ...]) -> Any:
    fields = dict(_object(sent, field))
    if EXACT in fields:
        return _read_exactly(fields, field)
    name = fields.pop(field, None)
    if name not in allowed:
        raise InvalidRequest(f"{field} is one of {', '.join(allowed)}, not {shown(name)}")
    return _called(named(name), name, fields)


def _read_exactly(fields: Mapping[str, Any], field: str, family: Any = Tagged) -> Any:
    """Decode an exact form: only listed classes anywhere in it, in the one canonical encoding."""
    text = fields[EXACT]
    if len(fields) > 1 or not isinstance(text, str):
        raise InvalidRequest(f"{EXACT} must be a text, and the only field")
    try:
        sent = text.encode()
        _must_be_listed(_plain_json(sent), [kind.__struct_config__.tag for kind in _classes(field)])
        made: object = decode(sent, family)
        canonical = encode(made) == sent
    except (InvalidParameter, UnicodeError, RecursionError) as error:
        raise InvalidRequest(f"{EXACT} is not the encoding of a {field}: {error}") from None
    if not canonical or (family is Tagged and type(made) not in _classes(field)):
        raise InvalidRequest(f"{EXACT} is not the canonical encoding of a {field}")
    return made


def _plain_json(sent: bytes) -> object:
    try:
        return msgspec.json.decode(sent)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"{EXACT} is not JSON: {error}") from None


def _must_be_listed(sent: object, tags: list[object]) -> None:
    """Refuse an object of an unlisted class at any depth, and data that is too deep or too large."""
    check_size(sent)
    parts = [sent]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if part.get("type") not in tags:
                raise InvalidRequest(
                    f"{shown(part.get('type'))} is not accepted here; it must be one of {', '.join(map(str, tags))}"
                )
            parts += part.values()
        elif isinstance(part, list):
            parts += part


_OF_SELECT = frozenset(("by", "keys", "noise", "of"))
_ANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
"""Parameters that need not be given."""


def _called(made: Callable[..., Any], name: str, fields: dict[str, Any], *, open_ended: bool = False) -> Any:
    known = _parameters(name)
    unknown = None if open_ended else next((field for field in fields if field not in known), None)
    if unknown is not None:
        raise InvalidRequest(f"{name} has no field {shown(unknown)}; it has {', '.join(known)}")
    needed = [field for field, one in known.items() if one.default is one.empty and one.kind not in _ANY]
    missing = next((field for field in needed if field not in fields), None)
    if missing is not None:
        raise InvalidRequest(f"{name} needs the field {missing!r}; it has {', '.join(known)}")
    return made(**{field: _value(value) for field, value in fields.items()})


def _value(sent: object) -> Any:
    """A plain value; an object is a request inside a request, and a list inside a list is a tuple of keys."""
    if isinstance(sent, dict):
        return decode_request(sent)
    if isinstance(sent, list):
        return [tuple(part) if isinstance(part, list) else part for part in sent]
    return sent


def _object(sent: object, field: str) -> Mapping[str, Any]:
    if not isinstance(sent, Mapping):
        raise InvalidRequest(f"{field} is an object such as {{{field!r}: ...}}, not {shown(sent)}")
    return sent

"""Plain data and its one canonical encoding: what is stored, hashed, compared and replayed.

Losses, relations, mechanisms, states and messages are frozen structs (`Value`) that carry a tag with a version
(`PureDP/1`). `encode` writes them as canonical JSON, in which equal values give equal bytes; `decode` reads them back.
Nothing is ever pickled. An integer has at most 4300 digits, which is what Python reads; a rational is written as a
ratio; a float has no exact meaning and is refused. A secret (anything with `__sealed__`) is written only if the caller
declares that the bytes will be sealed.

>>> from counterpoint import PureDP
>>> encode(PureDP(0.1))
b'{"type":"PureDP/1","epsilon":"1/10"}'
>>> decode(encode(PureDP(0.1)), PureDP)
PureDP(0.1)
"""

import hashlib
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from counterpoint.errors import CounterpointError, InvalidParameter, SecretLeak
from counterpoint.lazy import load
from counterpoint.numbers import Exact, format_number
from counterpoint.numbers.exact import read_stored, stored
from counterpoint.numbers.parameters import read_before_checks

T = TypeVar("T")
_REGISTRY: dict[str, type] = {}


def _versioned(name: str) -> str:
    return f"{name}/1"


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("counterpoint.")


class Tagged:
    """The root of every family that is stored (Loss, Relation, Mechanism, State, ...): subclasses are registered.

    A field annotated with such a family is decoded by its tag, so that `Filter(budget: Loss)` reads back whatever
    loss it was built with.
    """

    __slots__ = ()

    __defined_in__: ClassVar[object]
    """The module that defines the class, held so that Python empties it at exit.

    Python empties the modules that are alive then, and collects the rest. It cannot collect a module that holds an
    instance of a class of its own: msgspec hides instances without containers from the collector, and an instance holds
    its class, whose methods hold the module's names. So everything in a user's script would stay, tables and all.
    """

    def __init_subclass__(cls, **_config: object) -> None:
        """Register the class under the name that its tag will carry."""
        super().__init_subclass__()
        if not _ours(cls):
            load("counterpoint")  # so that a name of ours is known, and not taken later
        before = _REGISTRY.get(cls.__qualname__, cls)
        if before.__module__ != cls.__module__ and _ours(before):
            raise TypeError(
                f"the library stores a class of its own under the name {cls.__qualname__} (in {before.__module__}): "
                "give yours another name"
            )
        _REGISTRY[cls.__qualname__] = cls
        cls.__defined_in__ = sys.modules.get(cls.__module__)


class Value(msgspec.Struct, frozen=True, tag=_versioned):
    """A frozen struct whose tag is its qualified name and a version; change the version with the meaning.

    >>> class Pair(Tagged, Value, frozen=True):
    ...     left: int
    ...     right: int
    >>> encode(Pair(1, 2**80))
    b'{"type":"Pair/1","left":1,"right":1208925819614629174706176}'

    >>> Pair(1, 2), Pair(1, Fraction(1, 2))
    (Pair(left=1, right=2), Pair(left=1, right=0.5))

    A field whose annotation is a kind of parameter (`numbers.parameters`) is read by it, before `__post_init__`.
    """

    def __init_subclass__(cls, **_config: object) -> None:
        """Let the class read the parameters it declares."""
        super().__init_subclass__()
        read_before_checks(cls)

    def __repr__(self) -> str:
        """What was chosen: no defaults, and numbers as people write them. The only parameter needs no name."""
        needed = len(self.__struct_fields__) - len(self.__struct_defaults__)
        shown = {name: show(value) for name, value in _chosen(self)}
        alone = needed == len(shown) == 1
        parts = shown.values() if alone else (f"{name}={text}" for name, text in shown.items())
        return f"{type(self).__name__}({', '.join(parts)})"


def _chosen(struct: Value) -> Iterator[tuple[str, object]]:
    """The fields that do not have their default."""
    fields, defaults = struct.__struct_fields__, struct.__struct_defaults__
    needed = len(fields) - len(defaults)
    for name, default in zip(fields, (msgspec.NODEFAULT,) * needed + defaults, strict=True):
        value = getattr(struct, name)
        if not (value is default or (isinstance(value, type(default)) and value == default)):
            yield name, value


if TYPE_CHECKING:
    Plain: TypeAlias = "bool | int | str | tuple[Plain, ...] | Tagged | None"
    """Public plain data of no fixed type: what an ask's public part or an answer may be."""
else:

    class _AnyPlain(type):
        def __instancecheck__(cls, value: object) -> bool:
            return True  # what `_read` made of the data is plain by construction

    class Plain(metaclass=_AnyPlain):
        """Stands for plain data in a struct's annotations, so that decoding calls `_read`."""

        __plain__ = True


def encode(value: object, *, sealed: bool = False) -> bytes:
    """The canonical bytes of plain data; with `sealed=True`, secrets inside are written too.

    >>> encode((1, "two", None))
    b'[1,"two",null]'
    >>> encode(0.5)
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: a float is not plain data: give an integer or a rational
    """
    try:
        if type(value) not in _HARMLESS:
            _refuse_what_is_not_plain(value)
        return (_SEALED if sealed else _OPEN).encode(value)
    except RecursionError:
        raise InvalidParameter("plain data is not nested as deeply as this") from None
    except UnicodeError:
        raise InvalidParameter("half of a surrogate pair is not plain data: UTF-8 cannot write it") from None
    except (InvalidParameter, SecretLeak):
        raise
    except ValueError:  # Python refuses to write an integer that it would refuse to read
        raise InvalidParameter("an integer of more than 4300 digits is not plain data") from None


def encode_checked(value: object, kind: type, *, sealed: bool = False) -> bytes:
    """The bytes of plain data that is going to be stored, once `decode` has read them back as a value of this kind.

    What is stored is read again by later transactions and by other processes: bytes that no reader accepts would make a
    ledger useless. `InvalidParameter` says so before anything is written.

    >>> encode_checked(Fraction(1, 3), Fraction)
    b'"1/3"'
    """
    data = encode(value, sealed=sealed)
    must_read_back(data, kind, sealed=sealed)
    return data


def must_read_back(data: bytes, kind: type, *, sealed: bool = False) -> None:
    """`InvalidParameter` unless `decode` reads these bytes as a value whose bytes they are."""
    try:
        same = encode(decode(data, kind), sealed=sealed) == data
    except (CounterpointError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidParameter(f"this cannot be stored: it could not be read back ({error})") from None
    if not same:
        raise InvalidParameter("this cannot be stored: it would be read back as something else")


def decode(data: bytes, kind: type[T]) -> T:
    """Read back what `encode` wrote, as a value of the given kind (a struct, a family, or `Plain`).

    >>> decode(b'[1,[2,3]]', Plain)
    (1, (2, 3))
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_read, strict=True)
    except msgspec.MsgspecError as error:
        raise InvalidParameter(f"these bytes are not a {kind.__name__}: {error}") from None
    except UnicodeError:  # its message quotes a byte
        raise InvalidParameter(f"these bytes are not a {kind.__name__}: they are not UTF-8") from None
    except RecursionError:
        raise InvalidParameter(f"these bytes are not a {kind.__name__}: they are nested too deeply") from None


def digest(*values: object, sealed: bool = False) -> bytes:
    """A 32-byte fingerprint of plain data: equal values, equal fingerprints.

    >>> digest(1, "a") == digest(1, "a") != digest(1, "b")
    True
    """
    return hashlib.sha256(encode(values, sealed=sealed)).digest()


def plain_number(value: Fraction) -> str:
    """A rational as it is written: `n/d`.

    >>> plain_number(Fraction(1, 10))
    '1/10'
    """
    return f"{value.numerator}/{value.denominator}"


def show(value: object) -> str:
    """A value as a repr shows it: rationals as people write them, also inside a tuple.

    >>> show((Fraction(1, 2), "a", (Fraction(3),)))
    "(0.5, 'a', (3,))"
    """
    if isinstance(value, Fraction):
        return format_number(value)
    if type(value) is tuple:
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _refuse_what_is_not_plain(value: object) -> None:
    """Refuse what the encoder writes by itself but `decode` would not give back: floats, dicts, sets, bytes."""
    if isinstance(value, tuple | list):
        parts: Any = value
    elif isinstance(value, msgspec.Struct):
        parts = astuple(value)
    elif isinstance(value, float):
        raise InvalidParameter("a float is not plain data: give an integer or a rational")
    elif isinstance(value, dict | set | frozenset | bytes | bytearray):
        raise InvalidParameter(f"a {type(value).__name__} is not plain data: give a tuple or a struct")
    else:
        return
    for part in parts:
        if type(part) not in _HARMLESS:  # most are not worth a call, and every ask comes this way
            _refuse_what_is_not_plain(part)


_HARMLESS = frozenset((int, str, bool, type(None), Fraction, Exact))


def _write(value: object) -> object:
    if isinstance(value, Fraction):
        return stored(value)
    if hasattr(value, "__sealed__"):
        raise SecretLeak("a secret would have been written in the open")
    raise InvalidParameter(f"a {type(value).__name__} is not plain data")


def _write_sealed(value: object) -> object:
    seal = getattr(value, "__sealed__", None)
    return seal() if seal is not None else _write(value)


def _read(kind: type, data: Any) -> object:
    if kind is Fraction:
        return read_stored(data)
    if getattr(kind, "__plain__", False):
        return _read_plain(data)
    if hasattr(kind, "__unsealed__"):
        return kind.__unsealed__(_read_plain(data))
    if issubclass(kind, Tagged) and isinstance(data, dict):
        return _read_tagged(kind, data)
    raise InvalidParameter(f"no {kind.__name__} can be read from a {type(data).__name__}")


def _read_plain(data: Any) -> object:
    if isinstance(data, list):
        return tuple(_read_plain(item) for item in data)
    if isinstance(data, dict):
        return _read_tagged(Tagged, data)
    return data


def _read_tagged(kind: type, data: dict[str, Any]) -> object:
    tag = str(data.get("type", ""))
    name = tag.rpartition("/")[0]
    if name not in _REGISTRY:
        # stored data may name anything public, and the package imports its rooms only when they are used
        load("counterpoint")
    found = _REGISTRY.get(name)
    if found is None or not issubclass(found, kind) or not issubclass(found, msgspec.Struct):
        raise InvalidParameter(f"{tag or 'untagged data'} is not a known {kind.__name__}")
    return msgspec.convert(data, found, dec_hook=_read, strict=True)


_OPEN = msgspec.json.Encoder(enc_hook=_write, order="deterministic")
_SEALED = msgspec.json.Encoder(enc_hook=_write_sealed, order="deterministic")

"""Vectors of secret integers in a state, as wide as a million, in a few bytes each.

A `Packed` holds an array and is written, sealed only, as one string. Every integer takes the same number of bytes: as
many as its constructor is given, by public facts, so that the length of a sealed state reveals nothing; more only if a
value does not fit (noise that is wider than expected, a sum beyond 2^63), so nothing ever overflows.

>>> packed = Packed(np.array([1, -2, 300]), octets=2)
>>> packed, packed.integers
(Packed(...), array([  1,  -2, 300]))
>>> packed.__sealed__()
'2:AQD+/ywB'
"""

import binascii
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Integers
from counterpoint.errors import InvalidParameter, SecretLeak

_KINDS = {octets: np.dtype(f"<i{octets}") for octets in (1, 2, 4, 8)}
_MACHINE = tuple(_KINDS)
_LONGEST = 8
_BITS = 62
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_FEW = 64
_SHARED = 4
"""How many integers each possible value has to stand for, on average, to be made once for all of them."""
_HALF = 2**12
_SHORT = 2**16
"""Weights that add up to less than this, times 16 bits, stay in 32."""
_CODE = np.dtype(np.int64).char


def roomy(values: Integers, bits: int) -> Integers:
    """The same integers in 64 bits if each could still be multiplied by 2^bits there, else Python's own.

    >>> roomy(np.array([2**40]), 8).dtype, roomy(np.array([2**40]), 30).dtype
    (dtype('int64'), dtype('O'))
    """
    return values.astype(np.int64 if _has_room(values, bits) else object, copy=False)


def added(one: Integers, other: Integers) -> Integers:
    """The sum of two vectors, in 64 bits if it fits there, else in Python's own integers; narrow ones are not copied.

    >>> added(np.array([1, 2]), np.array([3, -4], dtype=np.int8)), added(np.array([2**62]), np.array([2**62])).dtype
    (array([ 4, -2]), dtype('O'))
    """
    if one.dtype.kind == other.dtype.kind == "i" and _has_room(one, 2) and _has_room(other, 2):
        return np.add(one, other, dtype=np.int64)
    return roomy(one, 2) + roomy(other, 2)


def weighted_sum(weights: Sequence[int], rows: Sequence[Integers]) -> Integers:
    """The sum of the rows, each times its weight: in a type that has room for it, so exactly.

    Rows of 16 bits are added up in 32 bits, which takes numpy half of the time.

    >>> weighted_sum([1, -2**40], [np.array([1, 2]), np.array([3, 4])]).tolist()
    [-3298534883327, -4398046511102]
    """
    most, short = sum(map(abs, weights)), all(row.dtype == np.int16 for row in rows)
    if short and most < _SHORT:
        return _products(weights, np.array(rows, dtype=np.int32))
    if short and max(sum(abs(w // _HALF) for w in weights), sum(w % _HALF for w in weights)) < _SHORT:
        return _sum_by_halves(weights, rows)
    together: Any = np.array(rows)
    return _products(weights, roomy(together, most.bit_length()))


def narrow(values: Integers, octets: int) -> Integers:
    """The same integers in `octets` bytes each if they fit there, else as they are.

    >>> narrow(np.array([1, -2, 300]), 2).dtype, narrow(np.array([2**15]), 2).dtype
    (dtype('int16'), dtype('int64'))
    """
    fits = octets in _KINDS and _octets(values, octets) == octets
    return values.astype(_KINDS[octets], copy=False) if fits else values


def as_integers(values: Sequence[int]) -> Integers:
    """These integers as an array: in 64 bits if all of them fit, else Python's own.

    >>> as_integers([1, -2]), as_integers([2**63])
    (array([ 1, -2]), array([9223372036854775808], dtype=object))
    """
    try:
        return np.array(values, dtype=np.int64) if len(values) <= _FEW else _many_integers(values)
    except (OverflowError, struct.error):
        return np.array(values, dtype=object)


def as_tuple(values: Integers) -> tuple[int, ...]:
    """These integers as Python's own, for an answer.

    Equal ones are one object where few differ, as counts do that are mostly noise: a million take a third of the time
    and a fifth of the memory.

    >>> as_tuple(np.array([3, -2, 3]))
    (3, -2, 3)
    """
    low, high = _range(values)
    if values.size <= _FEW or values.dtype != np.int64 or _SHARED * (high - low) >= values.size:
        return tuple(values.tolist())
    each = (low + np.arange(high - low + 1)).astype(object)
    return tuple(each.take(values - low).tolist())


def octets_for(scale: int) -> int:
    """How many bytes hold noise of this scale or standard deviation, practically always: 200 times it fits.

    >>> octets_for(10), octets_for(10**6)
    (2, 4)
    """
    return next((octets for octets in _MACHINE if 200 * scale < 2 ** (8 * octets - 1)), scale.bit_length() // 8 + 2)


class Packed:
    """A vector of secret integers of `octets` bytes each, or more if one does not fit.

    It is kept in pieces, so that a state can share with the one before what is the same in both.
    """

    __slots__ = ("_octets", "_pieces")

    def __init__(self, values: Integers, octets: int = _LONGEST) -> None:
        self._octets = _octets(values, octets)
        self._pieces: list[NDArray[Any]] = [values.astype(_KINDS.get(self._octets, object), copy=False)]

    @classmethod
    def joined(cls, pieces: Sequence[Integers], octets: int) -> "Packed":
        """These vectors one after another, in the memory that they have where they are as narrow, or narrower.

        >>> Packed.joined([np.array([1, 2]), np.array([3])], octets=1).__sealed__()
        '1:AQID'
        """
        whole = cls(as_integers([]), max((_octets(piece, octets) for piece in pieces), default=octets))
        kind = whole._pieces[0].dtype
        whole._pieces += [piece if _is_within(piece, whole._octets) else piece.astype(kind) for piece in pieces]
        return whole

    @classmethod
    def of(cls, value: int) -> "Packed":
        """A vector of one integer, in a third of the time.

        >>> Packed.of(7).only, Packed.of(2**70).only - 2**70
        (7, 0)
        """
        if not _LOWEST <= value <= _HIGHEST:
            return cls(np.array([value], dtype=object))
        one = cls.__new__(cls)
        one._octets, one._pieces = _LONGEST, [np.array([value], dtype=np.int64)]
        return one

    @property
    def only(self) -> int:
        """The integer of a vector that has one."""
        value: int = self._pieces[0].tolist()[0]
        return value

    @property
    def _values(self) -> NDArray[Any]:
        return self._pieces[0] if len(self._pieces) == 1 else np.concatenate(self._pieces)

    @property
    def integers(self) -> Integers:
        """The vector, to compute with: 64-bit, or Python's own where one is wider."""
        return self._values.astype(np.int64 if self._octets in _MACHINE else object, copy=False)

    def rows(self, width: int) -> list[NDArray[Any]]:
        """The vector in rows of this width, as narrow as they are kept: `roomy` makes room to compute with them."""
        return [row for piece in self._pieces for row in piece.reshape(-1, width)]

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def first(self, count: int) -> Integers:
        """The first integers, to compute with; the others are not unpacked."""
        return self._values[:count].astype(np.int64 if self._octets in _MACHINE else object)

    def rest(self, count: int) -> "Packed":
        """All but the first integers, in the same memory.

        >>> Packed(np.array([1, -2, 300])).rest(1).integers
        array([ -2, 300])
        """
        others = Packed.__new__(Packed)
        others._octets, others._pieces = self._octets, []
        for piece in self._pieces:
            others._pieces.append(piece[count:])
            count = max(0, count - len(piece))
        return others

    def __repr__(self) -> str:
        return "Packed(...)"

    def __sealed__(self) -> str:
        """The bytes of all integers, for `encode` alone, where what is written is going to be sealed."""
        if self._octets in _MACHINE:
            data = b"".join(piece.astype(_KINDS[self._octets], copy=False).tobytes() for piece in self._pieces)
        else:
            data = b"".join(int(value).to_bytes(self._octets, "little", signed=True) for value in self._values)
        return f"{self._octets}:{b64encode(data).decode()}"

    @classmethod
    def __unsealed__(cls, text: object) -> "Packed":
        octets, colon, data = text.partition(":") if isinstance(text, str) else ("", "", "")
        try:
            return cls(_unpacked(b64decode(data, validate=True), int(octets if colon else "")), int(octets))
        except (binascii.Error, ValueError, ZeroDivisionError):
            raise InvalidParameter("these are not the bytes of a packed vector") from None

    def __eq__(self, other: object) -> NoReturn:
        raise SecretLeak("a packed vector was compared: raw data may be used by mechanisms only")

    def __hash__(self) -> NoReturn:
        raise SecretLeak("a packed vector was hashed: raw data may be used by mechanisms only")

    def __getstate__(self) -> NoReturn:
        raise SecretLeak("a packed vector must not be copied or pickled: states are stored sealed, by their encoding")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise SecretLeak("a packed vector must not be copied or pickled: states are stored sealed, by their encoding")


def _has_room(values: Integers, bits: int) -> bool:
    """Whether each could still be multiplied by 2^bits in 64 bits."""
    if values.dtype.kind == "i" and 8 * values.dtype.itemsize + bits <= _BITS:  # whatever they are
        return True
    low, high = _range(values)
    return max(high, -low) >> max(0, _BITS - bits) == 0


def _sum_by_halves(weights: Sequence[int], rows: Sequence[Integers]) -> Integers:
    """The same for rows of 16 bits and larger weights: by their low bits, where there are any, and by the high ones."""
    pairs = sorted(zip(weights, rows, strict=True), key=lambda pair: pair[0] % _HALF == 0)
    low = [weight % _HALF for weight, _ in pairs if weight % _HALF]
    wide = np.array([row for _, row in pairs], dtype=np.int32)
    high_sum = _products([weight // _HALF for weight, _ in pairs], wide).astype(np.int64)
    return high_sum * _HALF + _products(low, wide[: len(low)])


def _products(weights: Sequence[int], rows: NDArray[Any]) -> Integers:
    total: Integers = np.einsum("i,ij->j", np.array(weights, dtype=rows.dtype), rows)
    return total


def _many_integers(values: Sequence[int]) -> Integers:
    """The same as an array of 64 bits, in half of numpy's time: `struct` asks no value for its type. May raise."""
    packed = np.empty(len(values), dtype=np.int64)
    struct.pack_into(f"{len(values)}{_CODE}", packed.data, 0, *values)
    return packed


def _range(values: Integers) -> tuple[int, int]:
    """The least and the greatest value, 0 if there is none. Of a few, Python finds them in a fifth of numpy's time."""
    if values.size > _FEW:
        return int(values.min()), int(values.max())
    few = values.reshape(-1).tolist()
    return min(few, default=0), max(few, default=0)


def _is_within(values: Integers, octets: int) -> bool:
    """Whether `octets` bytes hold the values, whatever they are."""
    return values.dtype.kind == "i" and values.dtype.itemsize <= octets


def _octets(values: Integers, least: int) -> int:
    """The narrowest width from `least` on that holds every value."""
    if _is_within(values, least):
        return least
    low, high = _range(values)
    bits = max(high, ~low).bit_length() + 1
    return max(least, next((octets for octets in _MACHINE if 8 * octets >= bits), -(-bits // 8)))


def _unpacked(data: bytes, octets: int) -> Integers:
    if len(data) % octets or octets < 1:
        raise ValueError("a part of an integer")
    if octets in _MACHINE:
        return np.frombuffer(data, dtype=f"<i{octets}").astype(np.int64)
    pieces = (data[at : at + octets] for at in range(0, len(data), octets))
    return np.array([int.from_bytes(piece, "little", signed=True) for piece in pieces], dtype=object)

"""Plain data has one encoding, and reads back as what it was."""

import subprocess
import sys
from collections import Counter
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint
from counterpoint import encoding
from counterpoint.encoding import _REGISTRY, Plain, Tagged, Value, decode, digest, encode
from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.lazy import load
from counterpoint.privacy.secret import Secret

plain = st.recursive(
    st.none() | st.booleans() | st.integers(min_value=-(2**200), max_value=2**200) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


class Figure(Tagged):
    __slots__ = ()


class Circle(Figure, Value, frozen=True):
    radius: Fraction


class Drawing(Tagged, Value, frozen=True):
    shape: Figure | None
    note: Plain = None
    hidden: Secret | None = None


@given(plain)
def test_plain_data_round_trips_to_equal_bytes(value):
    data = encode(value)
    back = decode(data, Plain)  # type: ignore[arg-type]
    assert back == value and encode(back) == data


def test_a_field_of_a_family_reads_back_as_its_member():
    drawing = Drawing(Circle(Fraction(1, 3)), note=(1, Circle(Fraction(2))))
    assert decode(encode(drawing), Drawing) == drawing
    assert encode(drawing).startswith(b'{"type":"Drawing/1"')


def test_a_secret_is_written_only_under_seal():
    drawing = Drawing(None, hidden=Secret((1, 2**90)))
    with pytest.raises(SecretLeak):
        encode(drawing)
    sealed = encode(drawing, sealed=True)
    assert encode(decode(sealed, Drawing), sealed=True) == sealed


@pytest.mark.parametrize("value", [0.5, (1, 0.5), Circle(0.5), object(), {1: object()}, 1j])  # type: ignore[arg-type]
def test_what_has_no_exact_meaning_is_refused(value):
    with pytest.raises(InvalidParameter):
        encode(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"type":"Nowhere/1"}',
        b'{"type":"Circle/1"}',
        b'{"type":"Circle/1","radius":"1/0"}',
        b"[1]",
        b'{"type":"Circle/1","radius":"1e999999999"}',
        b'{"radius":"1"}',
        b"\xff\xff",
        b'{"type":"Figure/1"}',
        b'{"type":"Tagged/1"}',
        b"[" * 10**5,
        b"[" * 400 + b"]" * 400,
        b"[" * 10**5 + b"]" * 10**5,
        b'{"type":"Circle/1","radius":' * 10**4 + b"1" + b"}" * 10**4,
        b'{"type":"Circle/1","radius":"\xff"}',
    ],
)
def test_hostile_bytes_are_a_typed_error(data):
    for kind in (Figure, Plain):
        if kind is Figure or data not in PLAIN_ALL_THE_SAME:
            with pytest.raises(InvalidParameter):
                decode(data, kind)


PLAIN_ALL_THE_SAME = (b"[1]", b"[" * 400 + b"]" * 400)
"""No shape, but plain data."""


def test_what_is_nested_too_deeply_is_a_typed_error():
    nested: object = 1
    for _ in range(10**4):
        nested = (nested,)
    with pytest.raises(InvalidParameter, match="nested"):
        encode(nested)


@given(plain, plain)
def test_fingerprints_agree_just_where_values_do(left, right):
    assert (digest(left) == digest(right)) == (encode(left) == encode(right))


def test_a_class_is_read_without_importing_the_package_again(monkeypatch):
    """Every step reads a state back, and importing takes milliseconds."""
    monkeypatch.setattr(encoding, "load", lambda _: pytest.fail("imported again"))
    assert decode(encode(Circle(Fraction(1))), Tagged) == Circle(Fraction(1))


def test_another_version_of_a_class_is_refused():
    with pytest.raises(InvalidParameter):
        decode(encode(Circle(Fraction(1))).replace(b"Circle/1", b"Circle/2"), Figure)


def test_every_field_of_ours_is_written_whatever_its_value():
    """A stored value has all the fields of its class: none is left out where it has its default."""
    load("counterpoint")
    ours = [
        kind for kind in _REGISTRY.values() if kind.__module__.startswith("counterpoint.") and issubclass(kind, Value)
    ]
    assert len(ours) > 100
    for kind in ours:
        assert msgspec.UNSET not in kind.__struct_defaults__ and not kind.__struct_config__.omit_defaults, kind


def test_no_two_of_our_classes_are_stored_under_one_name():
    load("counterpoint")
    ours = [kind for kind in set(_REGISTRY.values()) if kind.__module__.startswith("counterpoint.")]
    tags = Counter(kind.__struct_config__.tag for kind in ours if issubclass(kind, msgspec.Struct))
    assert len(tags) > 100 and max(tags.values()) == 1, tags.most_common(3)
    assert tags.keys() == {f"{kind.__qualname__}/1" for kind in ours if issubclass(kind, msgspec.Struct)}


def test_a_class_inside_a_function_is_not_read_back_by_whatever_tag():
    class InsideAFunction(Tagged, Value, frozen=True):
        left: int

    class RenamedInside(Tagged, Value, frozen=True, tag="AnotherOlderName/1"):
        left: int

    for value in (InsideAFunction(1), RenamedInside(1)):
        with pytest.raises(InvalidParameter, match="is not a known Tagged"):
            decode(encode((value,)), Plain)


def test_a_repr_shows_what_was_chosen_and_numbers_as_people_write_them():
    assert repr(Circle(Fraction(1, 2))) == "Circle(0.5)"
    assert repr(Drawing(Circle(Fraction(2)))) == "Drawing(Circle(2))"
    shown = repr(Drawing(None, note=(Fraction(1, 10**6), "x"), hidden=Secret(41)))
    assert shown == "Drawing(shape=None, note=(1e-6, 'x'), hidden=Secret(...))"
    assert repr(counterpoint.Filter(counterpoint.PureDP(1))) == "Filter(PureDP(1))"


def test_a_number_that_was_read_back_is_encoded_to_the_same_bytes():
    circle = decode(encode(Circle(Fraction(1, 10))), Circle)
    assert repr(circle.radius) == "0.1" and encode(circle) == encode(Circle(Fraction(1, 10)))


def test_a_class_with_the_name_of_one_of_ours_is_refused_where_it_is_defined():
    """Also if ours has not been imported yet: which of the two is stored must not depend on the order of imports."""
    program = (
        "import counterpoint as cp\n"
        "from counterpoint.encoding import Value\n"
        "try:\n"
        "    class ThresholdState(cp.mechanisms.Own, Value, frozen=True):\n"
        "        pass\n"
        "except TypeError as error:\n"
        "    print(error)\n"
        "class Seeing(cp.mechanisms.Own, Value, frozen=True):\n"
        "    pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "under the name ThresholdState" in done.stdout and "give yours another name" in done.stdout

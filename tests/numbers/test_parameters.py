"""Parameters are declared once, by their kind: what a constructor takes, what the field holds, what is refused."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest

from counterpoint.encoding import Tagged, Value, decode, encode
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number, parameters
from counterpoint.numbers.parameters import (
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    PositiveOrNone,
    Probability,
    Rational,
    default,
)


class Noise(Tagged, Value, frozen=True):
    epsilon: Positive
    asks: Annotated[PositiveInt | None, "the number of asks"] = None
    scale: Annotated[PositiveOrNone, "the scale"] = default(None)
    delta: Probability = default(Fraction(0))


class Checked(Noise, frozen=True):
    most: PositiveInt = 10

    def __post_init__(self) -> None:
        if self.asks is not None and self.asks > self.most:
            raise InvalidParameter("too many asks")


class CheckedAgain(Checked, frozen=True):
    least: NonNegativeInt = 0


@pytest.mark.parametrize("given", [0.1, "0.1", "1/10", Fraction(1, 10)])
def test_a_field_holds_the_rational_that_is_meant(given: Number) -> None:
    assert Noise(given) == Noise(Fraction(1, 10))
    assert isinstance(Noise(given).epsilon, Fraction)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Noise(0), "epsilon must be above 0, but 0 was given"),
        (lambda: Noise(1, asks=0), "the number of asks must be at least 1, but 0 was given"),
        (lambda: Noise(1, scale=-1), "the scale must be above 0, but -1 was given"),
        (lambda: Noise(1, delta=2), "delta must be between 0 and 1, but 2 was given"),
        (lambda: Noise(None), "epsilon must be a number, but a NoneType was given"),  # type: ignore[arg-type]
        (lambda: Noise(True), "epsilon must be a number, but a truth value was given"),
    ],
)
def test_a_message_calls_a_parameter_by_its_annotated_name(build: object, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        build()  # type: ignore[operator]


def test_what_may_be_none_stays_none() -> None:
    assert (Noise(1).asks, Noise(1).scale, Noise(1, scale=0.5).scale) == (None, None, Fraction(1, 2))


def test_parameters_are_read_before_a_class_checks_them_and_in_classes_that_inherit() -> None:
    for kind in (Checked, CheckedAgain):
        assert kind("0.5", most=3.0, asks="2").epsilon == Fraction(1, 2)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="too many asks"):
            kind(1, asks="11")  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
            kind(0)
    with pytest.raises(InvalidParameter, match="least must be at least 0"):
        CheckedAgain(1, least=-1)


def test_a_check_that_forgets_its_base_still_sees_parameters_that_were_read() -> None:
    class Forgetful(Noise, frozen=True):
        def __post_init__(self) -> None:
            assert isinstance(self.epsilon, Fraction)

    assert Forgetful("0.5").epsilon == Fraction(1, 2)
    with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
        Forgetful(0)


def test_a_check_may_call_that_of_its_base() -> None:
    class Twice(Checked, frozen=True):
        def __post_init__(self) -> None:
            super().__post_init__()
            if self.epsilon > 5:
                raise InvalidParameter("epsilon is at most 5")

    assert Twice("0.5").epsilon == Fraction(1, 2)
    with pytest.raises(InvalidParameter, match="too many asks"):
        Twice(1, asks=11)
    with pytest.raises(InvalidParameter, match="at most 5"):
        Twice(6)


def test_annotations_that_are_texts_are_read_as_well() -> None:
    class Later(Value, frozen=True):
        epsilon: "Positive"
        next: "Later | None" = None

    assert Later(0.5, Later(1)).epsilon == Fraction(1, 2)


def test_a_kind_inside_a_container_is_refused_where_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match="read only as a field of its own"):

        class Many(Value, frozen=True):
            epsilons: tuple[Positive, ...]


def test_what_a_mixin_annotates_is_not_a_field() -> None:
    class Named:
        hits: PositiveInt

    class Watch(Named, Value, frozen=True):
        at: Rational
        above: NonNegative = default(Fraction(0))

    assert Watch("0.5").at == Fraction(1, 2)
    assert not hasattr(Watch("0.5"), "hits")


@pytest.mark.parametrize(
    "kind, last, beyond",
    [
        (parameters.Positive, "1e-9", 0),
        (parameters.NonNegative, 0, "-1e-9"),
        (parameters.Probability, 1, "1.000000001"),
        (parameters.Order, "1.000000001", 1),
        (parameters.Rate, "0.999999999", 1),
        (parameters.PositiveInt, 1, 0),
        (parameters.NonNegativeInt, 0, -1),
        (parameters.Flag, True, 1),
    ],
)
def test_a_kind_takes_numbers_up_to_its_limit_and_none_beyond(kind: Any, last: object, beyond: object) -> None:
    class Limited(Value, frozen=True):
        value: kind

    assert Limited(last).value is not None
    with pytest.raises(InvalidParameter):
        Limited(beyond)


def test_stored_parameters_are_read_and_checked() -> None:
    given = Noise(0.1, asks=3, scale="1/3")
    assert encode(given) == b'{"type":"Noise/1","epsilon":"1/10","asks":3,"scale":"1/3","delta":"0/1"}'
    assert decode(encode(given), Noise) == given
    with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
        decode(b'{"type":"Noise/1","epsilon":"0/1"}', Noise)


def test_type_checkers_take_any_number_and_see_a_fraction(tmp_path: Path) -> None:
    """Constructors take what `Number` lists, and nothing else; fields are `Fraction`, for strict mypy."""
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(
        "from fractions import Fraction\n"
        "import counterpoint as cp\n"
        "cp.Laplace(0.5)\n"
        'total: Fraction = cp.Laplace("0.5").epsilon + Fraction(1)\n'
        "cp.Laplace(1, asks=2).asks + 1\n"
        "cp.Laplace([])\n"
        "cp.Laplace(1, asks='2')\n"
        "cp.Laplace()\n"
        "cp.Laplace(1).epsilon = 2\n"
    )
    # in a process of its own: mypy raises the recursion limit
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(script)], capture_output=True, text=True, check=False
    ).stdout
    lines = sorted(int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line)
    assert lines == [6, 7, 8, 9], found

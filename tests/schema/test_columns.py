"""Declarations of columns: bounds on the grid, distinct public keys, values as they are stored."""

from fractions import Fraction

import pytest

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.schema.columns import Column, Whole, boolean, category, number, text


def test_a_number_knows_its_bounds_in_steps():
    price = number(-1, 99.99, step=0.01)
    assert (price.least, price.most, price.grid) == (-100, 9999, Fraction(1, 100))
    thirds = number(0, "2/3", step="1/3")
    assert (thirds.least, thirds.most) == (0, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: number(1, 1),
        lambda: number(2, 1),
        lambda: number(0, 1, step=0),
        lambda: number(0, 1, step=-1),
        lambda: number(0, 1, step=0.3),
        lambda: number(0.5, 1),
        lambda: number(0, float("inf")),
        lambda: number(0, float("nan")),
        lambda: number(0, 2**62 + 1),
        lambda: number(0, 1, step=Fraction(1, 10**19)),
        lambda: number(None, 1),
        lambda: category([]),
        lambda: category("abc"),
        lambda: category(["a", "a"]),
        lambda: category(["a", 1]),
        lambda: category([True, False]),
        lambda: category([1.5]),
        lambda: category([2**63]),
        lambda: category(["a\0"]),
        lambda: category(range(10_001)),
        lambda: category(None),
    ],
)
def test_a_declaration_that_could_not_be_kept_is_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_the_refusal_of_bounds_off_the_grid_names_the_nearest_that_would_do():
    with pytest.raises(
        InvalidParameter, match=r"high must be a whole number of steps: 1 is not a multiple of 0\.3; 0\.9 and"
    ):
        number(0, 1, step=0.3)


@pytest.mark.parametrize("column", [number(0, 1, 0.5), category(["a"]), category([1, 2]), text(), boolean(), Whole()])
def test_a_declaration_reads_back_as_what_it_was(column):
    assert decode(encode(column), Column) == column and column.describe()


def test_keys_are_turned_into_what_is_stored():
    assert number(0, 10, step=0.5).key(2) == 4
    assert category([3, 4]).key(4) == 4 and category(["x"]).key("y") == "y"
    assert boolean().key(False) is False
    for column, wrong in ((number(0, 10), 0.5), (text(), 1), (boolean(), 1), (boolean(), "x"), (Whole(), True)):
        with pytest.raises(InvalidRequest):
            column.key(wrong)
    with pytest.raises(InvalidRequest):
        number(0, 1).key("1")

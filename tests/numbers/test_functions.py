"""Functions of a decimal: the same digits as `decimal` computes by itself, whatever else uses Arb in this process."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Overflow

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.numbers import interval as functions
from counterpoint.numbers import precision
from counterpoint.numbers.interval import bounds


def context(digits: int) -> Context:
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Overflow])


def around(value: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    return context(digits).next_minus(value), context(digits).next_plus(value)


decimals = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(1, 10**25), st.integers(-45, -20)
)


@given(decimals, st.sampled_from([-1, 1]), st.sampled_from([3, 20, 62]))
def test_exp_and_log_have_the_digits_that_decimal_computes_by_itself(x, sign, digits):
    signed = sign * x
    assert bounds(functions.exp, signed, context(digits)) == around(context(digits).exp(signed), digits)
    if x != 1:
        assert bounds(functions.log, x, context(digits)) == around(context(digits).ln(x), digits)


def test_a_value_very_near_half_way_between_two_decimals_is_rounded_to_the_right_side():
    x = Decimal("-1e-62")  # e^x - 1 = x + x^2/2 + x^3/6, where x^2/2 is half a unit in the 62nd digit
    assert bounds(functions.expm1, x, context(62)) == around(x, 62)


def test_a_value_too_large_for_a_decimal_is_refused_and_one_too_small_is_between_zero_and_the_smallest():
    for x in (Decimal(10) ** 30, Decimal("1e400")):
        with pytest.raises(Overflow):
            bounds(functions.exp, x, context(20))
        least, most = bounds(functions.exp, -x, context(20))
        assert least <= 0 < most < Decimal("1e-999999999999999999")


def test_a_function_that_cannot_be_evaluated_is_an_error_and_no_guess():
    def vague(x: flint.arb) -> flint.arb:
        return x + flint.arb(0, 1)

    with pytest.raises(ArithmeticError, match="vague"):
        bounds(vague, Decimal(1), context(5))


def test_threads_that_need_different_precisions_get_their_digits_and_leave_that_of_arb_as_it_was():
    before = flint.ctx.prec
    digits = list(range(5, 85)) * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda d: bounds(functions.exp, Decimal("0.3"), context(d)), digits))
    assert found == [around(context(d).exp(Decimal("0.3")), d) for d in digits]
    assert flint.ctx.prec == before


def test_the_precision_that_a_program_chose_for_itself_changes_nothing():
    known = precision(50)(3).log()
    with flint.ctx.workprec(2):
        low = precision(50)(3).log()
        assert flint.ctx.prec == 2
    assert (low.lower, low.upper) == (known.lower, known.upper)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_computes_can_compute():
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(_compute, 2000) for _ in range(2)]
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                _compute(3)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        for each in running:
            each.result()


def _compute(times: int) -> None:
    for _ in range(times):
        bounds(functions.exp, Decimal("0.3"), context(30))

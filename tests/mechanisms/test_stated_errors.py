"""Every stated error holds, and is not far above what is seen on the worst input; the benchmark lists the cases."""

from math import ceil

import pytest
from bench.errors import FAILS, Case, cases
from scipy.stats import binom
from tests.verify.shipped import shipped

from counterpoint.mechanisms.mechanism import Mechanism

ELSEWHERE = {
    "RandomizedResponse": "a bit is right or wrong, and the chance of that is compared exactly",
    "InteractiveRandomizedResponse": "the same",
    "LinearGuessAndCheck": "that of its guess and check",
    "Sampled": "that of its mechanism",
    "DigitTreeCounter": "the totals of a monotone histogram, which states its own",
    "ScalarDigitTree": "for the tests of its noise",
    "Resized": "for the verifier",
}


def quick(case: Case) -> object:
    """Those whose runs take less than a second in all; the others are for the long lane."""
    fast = not case.why and "exponential" not in case.name
    return pytest.param(case, marks=[] if fast else pytest.mark.long, id=case.name)


@pytest.mark.statistical
@pytest.mark.parametrize("case", [quick(case) for case in cases()])
def test_the_stated_error_holds_and_a_part_of_it_is_reached_as_often_as_it_may_fail(case):
    """Binomial tests: each has a false alarm below 1e-9, if the error fails, or is reached, in a tenth of the runs."""
    failed, reached = (round(case.often(far) * case.runs) for far in (case.stated + 1, ceil(case.stated / case.within)))
    assert binom.sf(failed - 1, case.runs, FAILS) > 1e-9
    assert binom.cdf(reached, case.runs, FAILS) > 1e-9
    assert case.within <= 1.3 or case.why, "a wide bound says why it is wide"


def test_every_mechanism_that_states_an_error_is_compared():
    stating = {kind.__name__ for kind in shipped(Mechanism) if kind.error is not Mechanism.error}
    compared = {type(case.mechanism).__name__ for case in cases()}
    assert stating - compared - ELSEWHERE.keys() - {"Additive", "NoisyThreshold", "Response"} == set()

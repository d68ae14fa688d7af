"""Exact verification, timed against the time that it is meant to take."""

from collections.abc import Iterator
from fractions import Fraction

from bench.table import Row, seconds
from counterpoint.mechanisms.guess_and_check import GuessAndCheck
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, Outcome, query_pairs


def rows() -> Iterator[Row]:
    finite = two_by_two()
    ten = seconds(lambda: exact(finite, messages=query_pairs(2), rounds=10).delta_at(1))
    yield Row("exact: 2 queries, 2 answers, 10 rounds", ten, 10.0, "ten seconds", at_most=1)
    sparse = seconds(lambda: exact(SparseVector(1, 10), rounds=5).delta_at(1))
    yield Row("exact: a sparse vector, 7 pairs, 5 rounds", sparse, 1.0, "one second", at_most=1)
    guess = seconds(lambda: exact(GuessAndCheck(1, 2), rounds=3).delta_at(1))
    yield Row("exact: guess and check, 3 rounds", guess, 10.0, "ten seconds", at_most=1)


def two_by_two() -> FiniteMechanism:
    """Two hidden states, two queries, two answers, and no symmetry that would make the tree small."""

    def law(*weights: int) -> tuple[Outcome, ...]:
        places = [(answer, state) for answer in (0, 1) for state in (0, 1)]
        return tuple(Outcome(Fraction(w, sum(weights)), *place) for w, place in zip(weights, places, strict=True))

    first = ((law(3, 1, 2, 5), law(2, 2, 4, 3)), (law(1, 4, 4, 2), law(3, 2, 5, 1)))
    second = ((law(5, 2, 1, 3), law(2, 6, 1, 2)), (law(2, 3, 1, 5), law(4, 1, 2, 4)))
    return FiniteMechanism((first, second))

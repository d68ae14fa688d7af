"""The protocol says all it has: what four members leave out has a default, and nothing is found by its name alone."""

import ast
from fractions import Fraction
from pathlib import Path

import pytest

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.errors import InvalidRequest, NotCovered
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.mechanisms.multiplicative_weights import MultiplicativeWeights
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.relations.steps import every_step

SRC = Path(cp.__file__).parent


class Minimal(Mechanism, Value, frozen=True):
    """The four members that a mechanism must have."""

    @property
    def claim(self):
        return claim(cp.PureDP(0), every_step(), "the answer does not depend on the data")

    def accepts(self, message):
        return isinstance(message, Ask)

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        return state.after_one(), 7


class Plus(cp.mechanisms.Postprocessor, Value, frozen=True):
    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request) + 1


class Vectors(Minimal, frozen=True):
    """Follows vectors of two numbers, and says so."""

    @property
    def dimensions(self):
        return 2

    def accepts(self, message):
        return message.private.width == 2 if isinstance(message, Update) else isinstance(message, Ask)


def test_four_members_are_enough_for_a_session():
    handle = cp.Session(cp.Stream(), within=cp.PureDP(1)).launch(Minimal())
    assert handle.ask() == 7 and handle.halted


def test_what_a_mechanism_does_not_define_has_a_default():
    minimal = Minimal()
    assert minimal.fitted(Steps(updates=1), 3) is minimal
    assert minimal.public_part(Fraction(1, 2)) is None
    assert minimal.updated(Left(2), [Update(1)] * 2, cp.coins.SeededCoins(1)) is None, "a step for each"
    assert (minimal.asks_are_public, minimal.sensitivity, minimal.dimensions) == (False, None, None)
    with pytest.raises(NotCovered, match="Minimal does not say how far off"):
        minimal.error(0.95, asks=3)


@pytest.mark.parametrize("mechanism", [Minimal(), cp.Laplace(1), cp.postprocess(Plus(), cp.Laplace(1))])
@pytest.mark.parametrize("options", [{"threshold": 3}, {"grid": 1}, {"guess": 2, "margin": 1}])
def test_options_that_are_not_its_own_are_refused(mechanism, options):
    handle = cp.Session(cp.Stream(), within=cp.PureDP(1)).launch(mechanism)
    with pytest.raises(InvalidRequest, match="takes no"):
        handle.ask(cp.total(), **options)


def test_a_refusal_names_the_options():
    with pytest.raises(InvalidRequest, match="Laplace takes no guess=, threshold="):
        cp.Laplace(1).public_part(None, threshold=1, guess=2)


def test_the_first_of_a_chain_reads_the_options():
    weights = MultiplicativeWeights(1, universe=2, rows=10, margin=0.5, updates=1)
    assert cp.postprocess(weights, Plus(), weights.checks).public_part(None, weights=[0, 1]) == (0, 1)
    with pytest.raises(InvalidRequest, match="Plus takes no weights="):
        cp.postprocess(Plus(), weights, weights.checks).public_part(None, weights=[0, 1])


@pytest.mark.parametrize("mechanism", [Vectors(), cp.postprocess(Plus(), Vectors())])
def test_a_mechanism_for_vectors_of_another_length_is_refused_before_anything_is_paid(mechanism):
    session = cp.Session(cp.Stream(dimensions=3), within=cp.PureDP(1))
    with pytest.raises(InvalidRequest, match="follows vectors of 2, but this data sends vectors of 3"):
        session.launch(mechanism)
    assert session.loss == cp.PureDP(0)


PROBED = {"mechanism", "message", "postprocessor", "ask", "update", "request"}


def test_no_mechanism_message_or_postprocessor_is_probed_for_a_name():
    probes = [
        f"{path.relative_to(SRC)}:{call.lineno}"
        for path in sorted(SRC.rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("getattr", "hasattr")
        and ast.unparse(call.args[0]).rpartition(".")[2] in PROBED
        and not ast.unparse(call.args[1]).startswith("'__")
    ]
    assert probes == []

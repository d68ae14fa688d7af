"""Sessions keep the laws: pay at launch, free refusals, isolation, one charge per request."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.deeds import done
from tests.session.numbers_source import Numbers
from tests.session.run_threads import run_threads

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.slots import Slots
from counterpoint.encoding import digest, encode
from counterpoint.errors import (
    BudgetExceeded,
    Halted,
    InvalidParameter,
    InvalidRequest,
    LedgerError,
    NotAllowed,
    NotCovered,
    RelationMismatch,
)
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.measures import ApproxDP, PureDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.session.session import Session
from counterpoint.session.step import StepCoins
from counterpoint.verify.finite import OpenDoor

DATA = {"apples": 100, "avocados": 7, "beans": 3}


def session(within=None, **options):
    return Session(Numbers(DATA), within or PureDP(1), **options)


def test_launching_pays_and_asking_does_not():
    s = session()
    noisy = s.launch(Laplace(0.4, asks=3))
    assert s.loss == PureDP(0.4)
    answers = [noisy.ask("apples") for _ in range(3)]
    assert s.loss == PureDP(0.4) and all(isinstance(answer, int) for answer in answers) and noisy.halted
    with pytest.raises(Halted):
        noisy.ask("apples")


def test_t03_a_refused_launch_is_free_and_leaves_no_gap():
    s = session()
    s.launch(Laplace(0.6))
    before = encode(s._engine.ledger.read(()), sealed=True)
    with pytest.raises(BudgetExceeded) as caught:
        s.launch(Laplace(0.6))
    assert caught.value.would_fit == PureDP(0.4)
    assert encode(s._engine.ledger.read(()), sealed=True) == before and len(done(s)) == 2
    assert s.launch(Laplace(0.4))._path == (1,)


def test_t04_children_outlive_the_budget():
    s = session()
    noisy = s.launch(Laplace(1, asks=50))
    with pytest.raises(BudgetExceeded):
        s.launch(Laplace(0.1))
    assert all(isinstance(noisy.ask("apples"), int) for _ in range(50)) and s.loss == PureDP(1)


def test_t05_reading_is_pure():
    s = session()
    s.launch(Laplace(0.4))
    before = encode(s._engine.ledger.read(()), sealed=True)
    for _ in range(50):
        assert s.loss == PureDP(0.4) and s.remaining.epsilon == Fraction(6, 10)
        s.would_cost(Laplace(0.1)), s.certificate(), s.history, repr(s)
    assert encode(s._engine.ledger.read(()), sealed=True) == before


def test_the_dry_run_is_the_commit():
    s = session()
    quote = s.would_cost(Laplace(0.4))
    assert quote.fits and quote.cost == PureDP(0.4)
    s.launch(Laplace(0.4))
    assert s.loss == quote.after
    refused = s.would_cost(Laplace(0.7))
    assert not refused.fits and "BudgetExceeded" in refused.refusal and s.loss == PureDP(0.4)


class Seeds:
    """Seeds that a test can predict."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return digest("seed", self.count)


launches = st.sampled_from([Laplace("0.2", asks=3), Laplace("0.5"), RandomizedResponse("0.3"), Gaussian("0.1")])
moves = st.lists(
    st.tuples(st.just("launch"), launches) | st.tuples(st.integers(0, 4), st.sampled_from(sorted(DATA))), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(moves)
def test_a_session_answers_as_the_pure_composition_does_on_equal_seeds(moves):
    """Both are driven through the same interleaving; each step of the pure one gets the session's coins for it."""
    seen = []

    class Watching(MemoryLedger):
        def begin(self, request, wanted, **more):
            intent = super().begin(request, wanted, **more)
            seen.append(intent)
            return intent

    s = Session(Numbers(DATA), PureDP(1), ledger=Watching(seeds=Seeds()))
    pure = Concurrent(Filter(PureDP(1)), s._source.relation)
    state, handles = pure.start(StepCoins(seen[0])), []
    for move, what in moves:
        seen.clear()
        message = Ask(Launch(what)) if move == "launch" else Ask(ToChild(move), DATA[what])
        try:
            if move == "launch":
                handles.append(s.launch(what))
                said = len(handles) - 1
            elif move >= len(handles):
                said = "InvalidRequest"
            else:
                said = handles[move].ask(what)
        except (BudgetExceeded, Halted, NotCovered) as error:
            said = type(error).__name__
        coins = StepCoins(seen[0]) if seen and isinstance(seen[0], Intent) else None
        state, answer = pure.step(state, message, coins)
        assert (answer.error if isinstance(answer, Refused) else answer) == said
    assert pure.loss(state) == s.loss


def test_the_same_id_gets_the_same_answer_and_another_body_is_a_conflict():
    s = session()
    noisy = s.launch(Laplace("0.01", asks=9), id="L")
    again = s.launch(Laplace("0.01", asks=9), id="L")
    assert again._path == noisy._path and s.loss == PureDP("0.01")
    first = noisy.ask("apples", id="q1")
    assert all(noisy.ask("apples", id="q1") == first for _ in range(20))
    with pytest.raises(LedgerError):
        noisy.ask("beans", id="q1")
    assert len({noisy.ask("apples") for _ in range(8)}) > 1, "other ids draw other noise"
    with pytest.raises(Halted):
        noisy.ask("apples", id="q2")
    assert noisy.ask("apples", id="q1") == first, "for ever, even after the halt"


def test_a_malformed_ask_changes_nothing():
    s = session()
    noisy = s.launch(Laplace(1, asks=2))
    before = encode(s._engine.ledger.read((0,)), sealed=True)
    for bad in ("bad request", 7, object()):
        with pytest.raises(InvalidRequest):
            noisy.ask(bad)
    with pytest.raises(InvalidRequest):
        noisy.ask()  # a Laplace mechanism wants a value
    with pytest.raises(InvalidRequest):
        noisy.ask("apples", threshold=3)
    assert encode(s._engine.ledger.read((0,)), sealed=True) == before


def test_t21_a_childs_halt_concerns_that_child_only():
    s = session()
    one, two = s.launch(Laplace(0.5)), s.launch(Laplace(0.5, asks=5))
    one.ask("apples")
    with pytest.raises(Halted):
        one.ask("apples")
    assert isinstance(two.ask("apples"), int)


def test_answers_come_in_the_requests_units():
    s = Session(Numbers({"x": 250}, sensitivity=100, grid=Fraction(1, 100)), PureDP(10**6))
    assert s.launch(Laplace(10**5)).ask("x") == Fraction(5, 2)


def test_a_mechanism_for_other_neighbours_is_refused_and_nothing_is_charged():
    s = Session(Numbers(DATA), ApproxDP(1, 0.9))
    assert "RelationMismatch" in s.would_cost(OpenDoor(0.1)).refusal
    with pytest.raises(RelationMismatch):
        s.launch(OpenDoor(0.1))
    assert s.loss == ApproxDP(0, 0) and len(done(s)) == 1


def test_delegation_reserves_the_whole_budget_to_any_depth():
    s = session()
    colleague = s.delegate(PureDP(0.5))
    assert s.loss == PureDP(0.5) and colleague.loss == PureDP(0)
    friend = colleague.delegate(PureDP(0.3))
    noisy = friend.launch(Laplace(0.3))
    assert isinstance(noisy.ask("apples"), int)
    with pytest.raises(BudgetExceeded):
        colleague.launch(Laplace(0.3))
    colleague.launch(Laplace(0.2))
    assert s.loss == PureDP(0.5) and colleague.loss == PureDP(0.5) and friend.remaining.epsilon == 0
    assert isinstance(s.launch(Laplace(0.5)).ask("beans"), int)
    assert noisy._path == (0, 0, 0)


def test_partition_charges_once_and_parts_interleave_with_each_other_and_the_parent():
    s = session()
    parts = s.partition("letter", k=1, within=PureDP(0.4))
    assert s.loss == PureDP(0.4)
    a, b = parts["a"].launch(Laplace(0.4, asks=3)), parts["b"].launch(Laplace(0.2, asks=3))
    top = s.launch(Laplace(0.6, asks=3))
    for _ in range(3):
        assert all(isinstance(handle.ask("apples"), int) for handle in (a, b, top))
    assert s.loss == PureDP(1) and parts["b"].loss == PureDP(0.2)
    with pytest.raises(BudgetExceeded):
        parts["a"].launch(Laplace(0.1))
    for n in range(200):
        parts[f"key{n}"].launch(Laplace(0.4))
    assert s.loss == PureDP(1), "any number of parts"


def test_a_partition_must_be_as_sparse_as_the_data():
    s = Session(Numbers(DATA, reach=3), PureDP(1))
    with pytest.raises(RelationMismatch, match="k=3"):
        s.partition("letter", k=1, within=PureDP(0.1))
    s.partition("letter", k=3, within=PureDP(0.1))
    assert s.loss == PureDP(0.3)


def test_static_parts_are_covered_in_every_measure():
    s = Session(Numbers(DATA), zCDP(1))
    parts = s.partition("letter", k=1, within=zCDP(0.5))
    assert isinstance(parts["a"].launch(Gaussian(0.5)).ask("apples"), int) and s.loss == zCDP(0.5)
    t = Session(Numbers(DATA), ApproxDP(1, 1e-6))
    t.partition("letter", k=1, within=ApproxDP(0.2, 1e-7))
    assert t.loss == ApproxDP(0.2, 1e-6)


def test_other_rules_run_sessions_too():
    counting = Session(Numbers(DATA), rule=Odometer(zCDP))
    counting.launch(Gaussian(0.5))
    assert counting.loss == zCDP(0.5)
    with pytest.raises(NotAllowed):
        counting.remaining  # noqa: B018 - asking is the point
    slots = Session(Numbers(DATA), rule=Slots([PureDP(0.1)] * 2))
    slots.launch(Laplace(0.1)), slots.launch(Laplace(0.05))
    with pytest.raises(BudgetExceeded):
        slots.launch(Laplace(0.05))


def test_sequential_mode_retires_a_handle_when_the_next_is_launched():
    s = session(sequential=True)
    one = s.launch(Laplace(0.5, asks=5))
    one.ask("apples")
    two = s.launch(Laplace(0.5, asks=5))
    with pytest.raises(Halted, match="sequential"):
        one.ask("apples")
    assert isinstance(two.ask("apples"), int)


def test_a_closed_session_launches_and_asks_no_more():
    with session() as s:
        noisy = s.launch(Laplace(0.5, asks=5))
    for deed in (lambda: s.launch(Laplace(0.1)), lambda: noisy.ask("apples"), lambda: s.delegate(PureDP(0.1))):
        with pytest.raises(NotAllowed):
            deed()


def test_x7_threads_cannot_overspend():
    """16 threads launch 0.6 and 0.00001 against one budget: exactly what fits is admitted."""
    s = session()
    wins = []

    def big():
        try:
            s.launch(Laplace(0.6))
            wins.append(1)
        except BudgetExceeded:
            pass

    run_threads(16, big)
    assert len(wins) == 1 and s.loss == PureDP(0.6)


@pytest.mark.parametrize("launches", [10**4, pytest.param(10**5, marks=pytest.mark.long)])
def test_x7_sixteen_threads_hammering_one_budget_never_exceed_it(launches):
    """Of so many launches by 16 threads exactly a fifth fits; the rest is refused and leaves nothing behind."""
    fits = launches // 5
    s = session(PureDP(Fraction(fits, 10**6)))
    admitted, refused = [], []

    def hammer():
        for _ in range(launches // 16):
            try:
                admitted.append(s.launch(Laplace("1e-6")))
            except BudgetExceeded:
                refused.append(1)

    run_threads(16, hammer, switch=1e-4)
    assert (len(admitted), len(refused)) == (fits, launches - fits) and s.loss == PureDP(Fraction(fits, 10**6))
    assert {handle._path for handle in s.handles} == {(n,) for n in range(fits)}, "no gap, none twice"
    assert len(done(s)) == fits + 1


def test_x7_a_snapshot_of_an_odometer_is_of_one_moment():
    s = Session(Numbers(DATA), rule=Odometer(PureDP))
    seen = []

    def work():
        for _ in range(50):
            s.launch(Laplace("0.01"))
            seen.append(s.loss.epsilon)

    run_threads(8, work)
    assert s.loss == PureDP(4) and all(loss * 100 == int(loss * 100) for loss in seen) and max(seen) == 4


def test_asks_on_one_handle_from_many_threads_are_each_paid_for_once():
    s = session()
    noisy = s.launch(Laplace(1, asks=100))
    answers, halts = [], []

    def ask():
        for _ in range(10):
            try:
                answers.append(noisy.ask("apples"))
            except Halted:
                halts.append(1)

    run_threads(16, ask)
    assert len(answers) == 100 and len(halts) == 60


def test_certificates_and_displays_are_readable_and_public():
    s = session()
    s.launch(Laplace(0.4))
    text = str(s.certificate())
    assert "Haney et al. 2023, Thm 1.19" in text and "discrete Laplace" in text
    assert "PureDP(0.4)" in repr(s) and "<table>" in s._repr_html_()
    from rich.console import Console

    console = Console(record=True, width=100)
    console.print(s)
    shown = console.export_text()
    assert "budget" in shown and "Laplace" in shown and "would fit" in shown
    assert all("100" not in fact.what for fact in s.history)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Session(Numbers(DATA)),
        lambda: Session(Numbers(DATA), PureDP(1), rule=Filter(PureDP(1))),
        lambda: Session("adult.parquet", PureDP(1)),
        lambda: Session(Numbers(DATA), 1.0),
        lambda: session().launch("Laplace"),
        lambda: session().launch(Concurrent(Filter(PureDP("0.1")), Numbers(DATA).relation)),
        lambda: Session(Numbers(DATA), rule=Filter(PureDP(1), halt=True)),
    ],
)
def test_what_a_newcomer_gets_wrong_first_is_explained(make):
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert len(str(caught.value)) > 30


def test_a_certificate_lists_launches_in_order_each_with_its_path_in_words():
    s = Session(Numbers(DATA), PureDP(1))
    s.launch(Laplace("0.1"))
    s.delegate(PureDP("0.2"))
    s.launch(Laplace("0.3"))
    s.partition("first letter", within=PureDP("0.1"))
    lines = [premise.statement for premise in s.certificate().premises if premise.statement.startswith("(")]
    assert [line.partition(" ")[0] for line in lines] == ["(0,):", "(1,):", "(2,):", "(3,):"]
    assert lines[0] == "(0,): PureDP(0.1) for neighbours that differ in any asks and any updates"
    assert "Steps(" not in str(s.certificate()) and ".py" not in str(s.certificate())

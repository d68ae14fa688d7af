"""Composites: derived claims, checked launches, taint, no silent roll-back, plain state; two worlds on one tape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.carried import chained

from counterpoint.coins.secure import SeededCoins
from counterpoint.continual.counter import Counter
from counterpoint.encoding import Tagged, Value, decode, encode
from counterpoint.errors import (
    BudgetExceeded,
    Halted,
    InvalidParameter,
    InvalidRequest,
    NotCovered,
    NotTotal,
    RelationMismatch,
    SecretLeak,
    TapeMismatch,
)
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.composite import Composite, CompositeState, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.mechanism import Left, Mechanism, State
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.mechanisms.randomized_response import Dice
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import OneWay, Steps, every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.verify.coupling import two_adaptive_worlds, two_worlds
from counterpoint.verify.finite import OpenDoor


class Memory(Own, Value, frozen=True):
    """A public number, a secret one, and several of either kind."""

    public: int = 0
    secret: Secret = Secret(0)
    publics: tuple[int, ...] = ()
    secrets: tuple[Secret, ...] = ()


class Inside(Tagged, Value, frozen=True):
    """A struct that may hold anything."""

    value: object


EACH = every_step()
ONCE, OFTEN, COUNT = (
    Part("once", PureDP(1), EACH),
    Part("often", PureDP("0.5"), EACH, sparse=2),
    Part("count", PureDP(1), Steps(updates=1, bound=1)),
)
REACTIONS = {}


class Program(Composite, Value, frozen=True):
    """A composite whose reaction is looked up by name; launches a sparse vector, a Laplace mechanism and a counter."""

    name: str

    @property
    def structure(self):
        return ONCE, OFTEN, COUNT

    @property
    def relation(self):
        return EACH

    def accepts(self, message):
        return isinstance(message, Ask | Update)

    def begin(self, context):
        context.launch("once", SparseVector(1, 10, hits=5))
        context.launch("often", Laplace("0.5", asks=5))
        context.launch("count", Counter(1))
        return Memory()

    def react(self, context, own, message):
        return REACTIONS[self.name](context, own, message)


def reaction(name):
    def register(function):
        REACTIONS[name] = function
        return function

    return register


def run(name, *messages, coins=None):
    program, coins = Program(name), coins or SeededCoins(1)
    state, answers = program.start(coins), []
    for message in messages:
        state, answer = program.step(state, message, coins)
        answers.append(answer)
    return state, answers


# ------------------------------------------------------------------------------------------------ the claim


def structured(*parts):
    class Structured(Program, frozen=True):
        @property
        def structure(self):
            return parts

    return Structured("none").claim


def test_the_claim_is_the_sum_of_the_parts_and_a_sparse_part_counts_k_times():
    claim = Program("any").claim
    assert claim.loss == PureDP(3) and claim.relation == EACH
    for theorem in (
        "Henzinger et al. 2024, Thm 6.1",
        "Cor 6.6",
        "Henzinger et al. 2024, Cor 5.5",
        "Henzinger et al. 2024, Thm 4.12",
    ):
        assert claim.certificate.rests_on(theorem)


@pytest.mark.parametrize(
    ("losses", "total"),
    [
        ([], PureDP(0)),
        ([ApproxDP("0.1", "1e-9"), PureDP("0.2")], ApproxDP("0.3", "1e-9")),
        ([zCDP("0.1"), zCDP("0.2")], zCDP("0.3")),
        ([RenyiDP(2, "0.1"), RenyiDP(2, "0.2")], RenyiDP(2, "0.3")),
    ],
)
def test_losses_of_one_measure_add(losses, total):
    assert structured(*(Part(str(i), loss, EACH) for i, loss in enumerate(losses))).loss == total


@pytest.mark.parametrize(
    "parts",
    [
        [Part("a", zCDP(1), EACH, sparse=1)],
        [Part("a", ApproxDP(1, "1e-6"), EACH, sparse=1)],
        [Part("a", RenyiDP(2, 1), EACH), Part("b", RenyiDP(3, 1), EACH)],
        [Part("a", zCDP(1), EACH), Part("b", PureDP(1), EACH)],
        [Part("a", GaussianDP(1), EACH), Part("b", PureDP(1), EACH)],
        [Part("a", GaussianDP(1), EACH, sparse=1)],
    ],
)
def test_what_no_theorem_covers_is_not_claimed(parts):
    with pytest.raises(NotCovered):
        _ = structured(*parts).loss


@pytest.mark.parametrize(
    ("part", "total"),
    [
        (Part("a", PureDP("0.1"), EACH, slots=3), PureDP("0.3")),
        (Part("a", ApproxDP("0.1", "1e-9"), EACH, slots=3), ApproxDP("0.3", "3e-9")),
        (Part("a", zCDP("0.1"), EACH, slots=3), zCDP("0.3")),
    ],
)
def test_slots_are_all_paid_for_in_every_measure_that_adds(part, total):
    claim = structured(part)
    assert claim.loss == total and claim.certificate.rests_on("Henzinger et al. 2024, Thm 4.12")


@pytest.mark.parametrize(
    "wrong",
    [{"slots": 0}, {"slots": True}, {"slots": 2, "sparse": 1}, {"sparse": 0}, {"name": 3}, {"loss": 1}],
)
def test_a_part_is_declared_in_full_or_not_at_all(wrong):
    with pytest.raises(InvalidParameter):
        Part(**{"name": "a", "loss": PureDP(1), "relation": EACH, **wrong})


def test_two_parts_of_one_name_are_refused():
    with pytest.raises(InvalidParameter, match="same name"):
        structured(ONCE, ONCE)


# ------------------------------------------------------------------------------------------------ launches


@pytest.mark.parametrize(
    ("part", "mechanism", "error"),
    [
        ("often", Laplace("0.6"), BudgetExceeded),
        ("often", Gaussian("0.01"), BudgetExceeded),
        ("often", Counter("0.5"), RelationMismatch),
        ("often", SparseVector("0.5", 0, monotone=True), RelationMismatch),
        ("once", Laplace(1), BudgetExceeded),
        ("count", Counter(1), BudgetExceeded),
        ("other", Laplace(1), InvalidParameter),
    ],
)
def test_a_launch_must_fit_its_part_in_loss_and_relation_and_number(part, mechanism, error):
    REACTIONS["launch"] = lambda context, own, _: (own, context.launch(part, mechanism))
    with pytest.raises(error):
        run("launch", Ask())


def test_a_part_for_one_launch_has_one_place():
    REACTIONS["elsewhere"] = lambda context, own, _: (own, context.launch("once", Laplace(1), at=1))
    with pytest.raises(BudgetExceeded):
        run("elsewhere", Ask())


class Slotted(Composite, Value, frozen=True):
    """A part with two slots, which are taken where the message says."""

    relation = EACH
    structure = (Part("both", PureDP(1), EACH, slots=2),)

    def accepts(self, message):
        return isinstance(message, Ask)

    def begin(self, context):
        return Memory()

    def react(self, context, own, message):
        context.launch("both", Laplace(1, asks=2), at=message.public)
        return own, context.ask("both", message.private, at=message.public) is not None


def test_a_slot_is_taken_once_and_there_are_no_more_of_them_than_declared():
    coins = SeededCoins(1)
    state = Slotted().start(coins)
    for at in (1, 0):
        state, _ = Slotted().step(state, Ask(at, 5), coins)
    for at in (0, 1, 2, -1):
        with pytest.raises(BudgetExceeded, match="no free slot"):
            Slotted().step(state, Ask(at, 5), coins)
    assert Slotted().claim.loss == PureDP(2)


@pytest.mark.parametrize("launch", [("often", "Laplace(1)", 0), ("often", Laplace("0.5"), True)])
def test_only_mechanisms_are_launched_in_numbered_places(launch):
    REACTIONS["strange launch"] = lambda context, own, _: (own, context.launch(*launch))
    with pytest.raises(InvalidParameter):
        run("strange launch", Ask())


class Gambler(Composite, Value, frozen=True):
    """Asks one of two mechanisms, which the dice choose."""

    relation = EACH
    structure = Part("dice", PureDP(0), EACH), Part("values", PureDP(1), EACH, slots=2)

    def accepts(self, message):
        return isinstance(message, Ask)

    def begin(self, context):
        context.launch("dice", Dice(2))
        for at in (0, 1):
            context.launch("values", Laplace(1, asks=40), at=at)
        return Memory()

    def react(self, context, own, message):
        at = context.ask("dice")
        return own, (at, context.ask("values", message.private, at=at))


def test_randomness_of_its_own_is_a_sub_mechanism_that_costs_nothing_and_falls_alike_in_two_worlds():
    assert Gambler().claim.loss == PureDP(2)
    coins = SeededCoins(1)
    state, chosen = Gambler().start(coins), set()
    for _ in range(40):
        state, (at, _) = Gambler().step(state, Ask(private=3), coins)
        chosen.add(at)
    assert chosen == {0, 1}
    found = two_worlds(Gambler(), [Ask(private=1)] * 40, [Ask(private=2)] * 40)
    assert found.reached == {"dice": 0, "values": 2}


@reaction("relaunching")
def _(context, own, message):
    context.launch("often", Laplace("0.25", asks=7))
    return own, context.ask("often", message.private)


def test_a_launch_in_a_sparse_part_replaces_the_old_child_which_is_forgotten():
    state, _ = run("relaunching", *[Ask(private=1)] * 50)
    assert len(state.children) == 3
    assert [child.mechanism for child in state.children if child.part == "often"] == [Laplace("0.25", asks=7)]
    assert len(encode(state, sealed=True)) < 2000


@reaction("several")
def _(context, own, message):
    for at in (1, 2):
        context.launch("often", Laplace("0.5"), at=at)
    return own, (
        context.ask("often", 10, at=1) is not None,
        context.halted("often", at=1),
        context.halted("often", at=2),
    )


def test_a_sparse_part_holds_several_children_in_places_of_their_own():
    assert run("several", Ask())[1] == [(True, True, False)]


def test_a_halted_or_missing_child_cannot_be_asked():
    REACTIONS["missing"] = lambda context, own, _: (own, context.ask("often", 1, at=9))
    with pytest.raises(InvalidRequest):
        run("missing", Ask())
    REACTIONS["halted"] = lambda context, own, _: (own, [context.ask("often", 1) for _ in range(6)])
    state, (answer,) = run("halted", Ask())
    assert state is None and answer == Failed(Halted.__name__)


# ------------------------------------------------------------------------------------------------ taint

LEAKS = {
    "returns it": lambda c, own, m: (own, m.private),
    "returns it inside": lambda c, own, m: (own, (1, Inside(m.private))),
    "branches on it": lambda c, own, m: (own, 1 if m.private > 3 else 0),
    "takes its truth value": lambda c, own, m: (own, 1 if m.private else 0),
    "formats it": lambda c, own, m: (own, f"{m.private}"),
    "indexes by it": lambda c, own, m: (own, (1, 2, 3)[m.private]),
    "counts to it": lambda c, own, m: (own, sum(1 for _ in range(m.private))),
    "hashes it": lambda c, own, m: (own, hash(m.private)),
    "looks it up": lambda c, own, m: (own, {1: 2}.get(m.private)),
    "takes its length": lambda c, own, m: (own, len(m.private)),
    "goes through it": lambda c, own, m: (own, [0 for _ in m.private]),
    "looks into it": lambda c, own, m: (own, m.private[0]),
    "takes the larger": lambda c, own, m: (own, max(m.private, 3)),
    "compares by equality": lambda c, own, m: (own, m.private == 2),
    "prints it": lambda c, own, m: (own, str(m.private)),
    "divides it": lambda c, own, m: (own, m.private // 2),
    "remembers by it": lambda c, own, m: (own, {m.private}),
    "asks in public": lambda c, own, m: (own, c.ask("once", 1, m.private)),
    "asks at its threshold": lambda c, own, m: (own, c.ask("once", 1, Threshold(m.private))),
    "asks with its sensitivity": lambda c, own, m: (own, c.ask("once", 1, sensitivity=m.private)),
    "asks in its place": lambda c, own, m: (own, c.ask("often", 1, at=m.private)),
    "launches by it": lambda c, own, m: (own, c.launch("often", AboveThreshold("0.5", m.private))),
    "launches in its place": lambda c, own, m: (own, c.launch("often", Laplace("0.5"), at=m.private)),
    "remembers it as public": lambda c, own, m: (Memory(public=m.private), None),
    "remembers it among public ones": lambda c, own, m: (Memory(publics=(1, m.private)), None),
    "returns what it remembers": lambda c, own, m: (own, own.secret + 1),
    "returns after asking": lambda c, own, m: (own, (c.ask("often", m.private), m.private)),
}


@pytest.mark.parametrize("name", LEAKS)
def test_whatever_would_show_or_decide_by_raw_data_is_a_leak_at_that_line(name):
    REACTIONS[name] = LEAKS[name]
    with pytest.raises(SecretLeak):
        run(name, Ask(private=2))


def test_the_line_that_did_it_is_the_last_of_the_program_in_the_traceback():
    def leaky(context, own, message):
        doubled = message.private * 2
        noisy = context.ask("often", doubled)
        if doubled > 7:
            noisy += 1
        return own, noisy

    REACTIONS["leaky"] = leaky
    with pytest.raises(SecretLeak, match="compared") as caught:
        run("leaky", Ask(private=2))
    lines = [str(entry.statement) for entry in caught.traceback if str(entry.path) == __file__]
    assert "if doubled > 7:" in lines[-1]


def test_a_program_sees_no_state_of_its_sub_mechanisms():
    """There the noise on a threshold stands in the open, and on equal sub-answers it is the same in two worlds."""
    shown = []

    def looking(context, own, message):
        context.ask("once", message.private)
        faces = (getattr(context, name) for name in dir(context) if not name.startswith("_"))
        shown.extend(face for face in faces if not callable(face))
        return own, None

    REACTIONS["looking"] = looking
    run("looking", Ask(private=2))
    assert shown and "tau" not in repr([encode(face, sealed=True) for face in shown])
    REACTIONS["telling the threshold"] = lambda c, own, m: (own, c.children[0].state.tau)
    with pytest.raises(AttributeError):
        run("telling the threshold", Ask(private=2))


@reaction("remembering")
def _(context, own, message):
    total = own.secret + message.private
    return Memory(own.public + 1, total, (1, 2), (total, message.private)), context.ask("often", total)


def test_secrets_may_be_remembered_as_secrets_and_survive_storage():
    program, coins = Program("remembering"), SeededCoins(1)
    state = program.start(coins)
    for value in (5, 2**80, -3):
        data = encode(state, sealed=True)
        state = decode(data, State)
        assert encode(state, sealed=True) == data
        state, _ = program.step(state, Ask(private=value), coins)
    assert reveal(state.own.secret) == 2**80 + 2 and reveal(state.own.secrets[1]) == -3
    with pytest.raises(SecretLeak):
        encode(state)


def test_memory_is_an_own_struct():
    REACTIONS["strange"] = lambda context, own, message: (3, None)
    with pytest.raises(InvalidParameter, match="Own"):
        run("strange", Ask())


@reaction("remembering updates")
def _(context, own, message):
    context.update("count", message.private)
    return Memory(own.public + 1, own.secret + message.private), None


def updated(name, items):
    program, coins = Program(name), SeededCoins(1)
    return program.updated(program.start(coins), [Update(item) for item in items], coins)


def test_updates_that_come_together_make_the_state_that_they_make_one_by_one():
    for items in ((), (5,), (5, 2**80, -3)):
        one_by_one, _ = run("remembering updates", *map(Update, items))
        assert encode(updated("remembering updates", items), sealed=True) == encode(one_by_one, sealed=True)


def test_what_many_updates_leave_behind_is_checked_before_it_is_stored():
    REACTIONS["leaking"] = lambda context, own, message: (Memory(message.private), None)
    REACTIONS["strange"] = lambda context, own, message: (own if own.public else 3, None)
    with pytest.raises(SecretLeak, match="not declared"):
        updated("leaking", (1, 2, 3))
    with pytest.raises(InvalidParameter, match="Own"):
        updated("strange", (1, 2, 3))


def test_an_update_among_many_that_breaks_the_program_is_told_by_the_next_ask():
    def breaking(context, own, message):
        context.ask("often", message.private)
        return Memory(own.public + 1 + 0 // (2 - own.public)), None

    REACTIONS["breaking at the third"] = breaking
    state = updated("breaking at the third", (1, 1, 1, 1))
    assert Program("breaking at the third").step(state, Ask(), SeededCoins(1)) == (None, Failed("ZeroDivisionError"))


# ------------------------------------------------------------------------------------------------ failures


@reaction("breaking after")
def _(context, own, message):
    context.ask("often", message.private)
    raise ValueError("after an answer")


@reaction("breaking before")
def _(context, own, message):
    context.update("count", 1)
    raise ValueError("before any answer")


def test_a_failure_after_an_answer_halts_and_does_not_tell_it():
    state, answers = run("breaking after", Ask(private=5))
    assert state is None and answers == [Failed("ValueError")]


def test_a_failure_before_an_answer_is_raised_and_changes_nothing():
    program, coins = Program("breaking before"), SeededCoins(1)
    state = program.start(coins)
    before = encode(state, sealed=True)
    with pytest.raises(ValueError, match="before any answer"):
        program.step(state, Ask(private=5), coins)
    assert encode(state, sealed=True) == before


def test_a_failure_in_an_update_is_told_by_the_next_ask_which_is_the_last():
    state, answers = run("breaking after", Update(5), Update(6))
    assert answers == [None, None] and state is not None
    state = decode(encode(state, sealed=True), State)
    assert Program("breaking after").step(state, Ask(), SeededCoins(1)) == (None, Failed("ValueError"))


@pytest.mark.parametrize("outcome", [(None, None), (Memory(), 7)], ids=["halting", "answering"])
def test_an_update_neither_answers_nor_halts(outcome):
    REACTIONS["answering"] = lambda *_: outcome
    with pytest.raises(InvalidParameter, match="an update"):
        run("answering", Update(1))


def test_an_answer_that_is_not_plain_is_a_failure():
    REACTIONS["floating"] = lambda context, own, message: (own, context.ask("often", message.private) / 2)
    assert run("floating", Ask(private=1)) == (None, [Failed("InvalidParameter")])


class PartialChild(Mechanism, Value, frozen=True):
    """A mechanism whose code fails by the data, each time with another error."""

    @property
    def claim(self):
        return claim(PureDP("0.5"), EACH, "it fails")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return Left(9)

    def step(self, state, message, coins):
        held = reveal(message.private)
        if held > 2:
            raise (ValueError, KeyError, ZeroDivisionError)[held % 3](f"it is {held}")
        return state, 0


def caught(function):
    try:
        return function()
    except Exception:
        return None


def failing(raw):
    return 1 // (raw - 2)


def failing_child(context, value):
    context.launch("often", PartialChild())
    return context.ask("often", value)


SWALLOWING = {
    "a function": lambda c, own, m: (own, caught(lambda: m.private.map(failing)) is None),
    "a shape": lambda c, own, m: (own, caught(lambda: m.private.map(lambda raw: (raw,))) is None),
    "a child's step": lambda c, own, m: (own, caught(lambda: failing_child(c, m.private + 1)) is None),
    "and raising another": lambda c, own, m: (own, caught(lambda: m.private.map(failing)) or {}["small"]),
}


@pytest.mark.parametrize("name", SWALLOWING)
def test_a_program_cannot_catch_the_failure_of_what_must_be_total_and_answer_by_it(name):
    """What it would do next depends on raw data; so it has broken, whether it catches the error or not."""
    REACTIONS[name] = SWALLOWING[name]
    answered = "step" in name
    if not answered:
        with pytest.raises(NotTotal):
            run(name, Ask(private=2))
    REACTIONS["asking first"] = lambda c, own, m: (c.ask("often", m.private), SWALLOWING[name](c, own, m))[1]
    assert run("asking first", Ask(private=2)) == (None, [Failed("NotTotal")])
    for program in ("asking first", name):
        with pytest.raises(TapeMismatch, match="must be total"):
            two_worlds(Program(program), [Ask(private=2)], [Ask(private=2)])


def test_why_a_childs_code_failed_is_not_told():
    REACTIONS["asking a child"] = lambda c, own, m: (own, failing_child(c, m.private))
    assert [run("asking a child", Ask(private=value)) for value in (3, 4, 5)] == [(None, [Failed("NotTotal")])] * 3
    context = Context((OFTEN,), (), SeededCoins(1))
    with pytest.raises(NotTotal) as info:
        failing_child(context, 8_675_309)
    assert chained(info.value) == [] and "8675309" not in str(info.value)
    frames = [str(entry.path) for entry in info.traceback]
    assert frames[-1].endswith("mechanism.py") and all("test_composite" in path for path in frames[:-3])


def test_an_update_that_breaks_a_function_is_told_by_the_next_ask():
    REACTIONS["updating"] = lambda c, own, m: (c.ask("often", 1), caught(lambda: m.private.map(failing)), (own, None))[
        2
    ]
    state, answers = run("updating", Update(2))
    assert answers == [None]
    assert Program("updating").step(state, Ask(), SeededCoins(1)) == (None, Failed("NotTotal"))


# ------------------------------------------------------------------------------------------------ nesting


class Outer(Composite, Value, frozen=True):
    """A composite in a composite."""

    relation = EACH
    structure = (Part("inner", PureDP(3), EACH),)

    def accepts(self, message):
        return isinstance(message, Ask)

    def begin(self, context):
        context.launch("inner", Program("remembering"))
        return Memory()

    def react(self, context, own, message):
        return own, context.ask("inner", message.private)


def test_composites_nest():
    coins = SeededCoins(1)
    state = Outer().start(coins)
    state, answer = Outer().step(decode(encode(state, sealed=True), State), Ask(private=1000), coins)
    assert abs(answer - 1000) < 500 and Outer().claim.loss == PureDP(3)
    assert two_worlds(Outer(), [Ask(private=1)], [Ask(private=2)]).reached == {"inner": 1}


# ------------------------------------------------------------------------------------------------ two worlds


@reaction("honest")
def _(context, own, message):
    if context.ask("once", message.private):
        return Memory(own.public + 1, message.private), context.ask("often", message.private)
    return Memory(own.public, message.private), None


@given(st.lists(st.tuples(st.integers(-20, 40), st.sampled_from([-1, 0, 1])), max_size=4), st.integers(0, 99))
def test_two_worlds_agree_on_an_honest_program(moves, seed):
    left = [Ask(private=value) for value, _ in moves]
    right = [Ask(private=value + move) for value, move in moves]
    found = two_worlds(Program("honest"), left, right, seed)
    assert found.steps == len(moves) and found.messages >= len(moves)
    assert found.reached["once"] == any(move for _, move in moves)


class OneWayProgram(Composite, Value, frozen=True):
    """Asks a sparse vector that is private only where all values move the same way, and a vector's best coordinate."""

    turned: int = 1

    @property
    def structure(self):
        return Part("above", PureDP(1), OneWay(EACH)), Part("best", PureDP(1), OneWay(EACH))

    @property
    def relation(self):
        return OneWay(EACH)

    def accepts(self, message):
        return isinstance(message, Ask) and message.one_way

    def begin(self, context):
        context.launch("above", SparseVector(1, 10, hits=5, monotone=True))
        context.launch("best", NoisyMax(1, monotone=True))
        return Memory()

    def react(self, context, own, message):
        above = context.ask("above", message.private * self.turned, one_way=True)
        both = message.private.map(lambda raw: (raw, 3), width=2)
        best = None if context.halted("best") else context.ask("best", both, sensitivity=2, each=1, one_way=True)
        return own, (above, best)


def upward(*values):
    return [Ask(private=value, one_way=True) for value in values]


def test_a_program_may_say_that_its_values_move_one_way_and_each_by_how_much():
    assert OneWayProgram().claim.loss == PureDP(2)
    assert two_worlds(OneWayProgram(), upward(3, 30), upward(4, 31)).reached == {"above": 1, "best": 1}
    assert two_worlds(OneWayProgram(turned=-1), upward(3, 30), upward(4, 31)).steps == 2
    with pytest.raises(RelationMismatch):
        two_worlds(OneWayProgram(), upward(3, 30), upward(4, 29))
    with pytest.raises(RelationMismatch, match="above"):
        two_worlds(OneWayProgram(turned=2), upward(3, 30), upward(4, 31))


NOTES = []
LIARS = {
    "sends it doubled": lambda c, own, m: (own, c.ask("once", m.private * 2)),
    "sends it squared": lambda c, own, m: (own, c.ask("often", m.private * m.private)),
    "counts every ask": lambda c, own, m: (own, c.update("count", m.private)),
}
PEEKERS = {
    "answers raw data": lambda c, own, m: (own, reveal(m.private)),
    "decides whom to ask": lambda c, own, m: (own, c.ask("often" if reveal(m.private) > 1 else "once", m.private)),
    "decides whether to ask": lambda c, own, m: (own, reveal(m.private) > 1 and c.ask("often", 1) > 99),
    "launches by raw data": lambda c, own, m: (own, c.launch("often", AboveThreshold("0.5", reveal(m.private)))),
    "asks in public": lambda c, own, m: (own, c.ask("once", 1, reveal(m.private))),
    "makes a width of it": lambda c, own, m: (own, m.private.map(lambda raw: (0,) * raw).width),
    "asks a width of it": lambda c, own, m: (own, c.ask("often", m.private.map(lambda raw: (0,) * raw))),
    "remembers raw data": lambda c, own, m: (Memory(public=reveal(m.private)), None),
    "lets it escape": lambda c, own, m: (m.private.map(lambda raw: NOTES.append(raw) or raw), (own, NOTES[-1]))[1],
    "breaks on raw data": lambda c, own, m: (m.private.map(lambda raw: 1 // (raw - 2)), (own, None))[1],
}


@pytest.mark.parametrize("name", LIARS)
def test_two_worlds_find_sub_inputs_that_are_not_neighbours_as_declared(name):
    REACTIONS[name] = LIARS[name]
    with pytest.raises(RelationMismatch):
        two_worlds(Program(name), [Ask(private=1)] * 4, [Ask(private=2)] * 4)


@reaction("restarting with the past")
def _(context, own, message):
    context.launch("often", Laplace("0.5"))
    return Memory(secret=message.private), context.ask("often", own.secret)


def test_two_worlds_find_a_difference_that_reaches_more_launches_than_declared():
    program, left, right = Program("restarting with the past"), [Ask(private=1)] * 4, [Ask(private=2)] * 4
    assert two_worlds(program, left[:3], right[:3]).reached["often"] == 2
    with pytest.raises(RelationMismatch, match="more than 2 of the launches in part 'often'"):
        two_worlds(program, left, right)


@pytest.mark.parametrize("name", PEEKERS)
def test_two_worlds_find_decisions_and_answers_that_depend_on_raw_data(name):
    REACTIONS[name] = PEEKERS[name]
    with pytest.raises(TapeMismatch):
        two_worlds(Program(name), [Ask(private=1)] * 2, [Ask(private=2)] * 2)


def test_two_worlds_want_neighbours_of_equal_length():
    with pytest.raises(RelationMismatch):
        two_worlds(Program("honest"), [Ask(private=0)], [Ask(private=2)])
    with pytest.raises(InvalidParameter):
        two_worlds(Program("honest"), [Ask(private=0)], [])


def test_two_worlds_follow_an_adversary_whose_messages_depend_on_the_answers():
    def adversary(answers):
        value = 20 if answers and answers[-1] is None else 0
        return Ask(private=value), Ask(private=value + 1)

    found = two_adaptive_worlds(Program("honest"), adversary, rounds=6, seed=3)
    assert found.steps == 6 and found.reached["once"] == 1
    with pytest.raises(RelationMismatch):
        two_adaptive_worlds(Program("honest"), lambda answers: (Ask(private=0), Ask(private=len(answers))), rounds=3)


class Doors(Composite, Value, frozen=True):
    """Opens doors in a sparse part: message n is for door n, which is made anew each time."""

    part: Part

    @property
    def structure(self):
        return (self.part,)

    @property
    def relation(self):
        return Steps(asks=1)

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def begin(self, context):
        return DoorsAsked(0)

    def react(self, context, own, message):
        context.launch("doors", OpenDoor("1/7"), at=0)
        answers = context.ask("doors", 0), context.ask("doors", message.private)
        return DoorsAsked(own.times + 1), answers


class DoorsAsked(Own, Value, frozen=True):
    times: int


def test_a_sparse_part_with_delta_total_charges_every_launch_even_one_that_was_replaced():
    part = Part("doors", ApproxDP(0, "1/7"), Steps(asks=1), sparse=1, delta_total="0.3")
    assert part.cost == ApproxDP(0, "0.3") and Doors(part).claim.loss == ApproxDP(0, "0.3")
    assert part.certificate.theorem.startswith("k-sparse parallel composition, every created delta")
    doors, coins = Doors(part), SeededCoins(1)
    state = doors.start(coins)
    for _ in range(2):
        state, _ = doors.step(decode(encode(state, sealed=True), CompositeState), Ask(private=0), coins)
    with pytest.raises(BudgetExceeded, match="delta_total"):
        doors.step(state, Ask(private=0), coins)
    with pytest.raises(NotCovered, match="delta_total"):
        Part("doors", ApproxDP(0, "1/7"), Steps(asks=1), sparse=1).cost  # noqa: B018
    with pytest.raises(InvalidParameter, match="sparse=k"):
        Part("doors", ApproxDP(0, "1/7"), Steps(asks=1), delta_total="0.3")


def test_a_first_pair_consistent_part_costs_k_and_is_checked_in_two_worlds():
    part = Part("doors", ApproxDP(0, "1/7"), Steps(asks=1), sparse=1, first_pair=True)
    assert part.cost == ApproxDP(0, "1/7")
    assert Part("r", zCDP(1), every_step(), sparse=2, first_pair=True).cost == zCDP(2)
    with pytest.raises(RelationMismatch, match="an equal message first and a differing one later"):
        two_worlds(Doors(part), [Ask(private=0)], [Ask(private=1)])
    allowed = Part("doors", ApproxDP(0, "1/7"), Steps(asks=1), sparse=1, delta_total="0.3")
    assert two_worlds(Doors(allowed), [Ask(private=0)], [Ask(private=1)]).reached == {"doors": 1}


def test_a_composite_stored_before_parts_had_accounts_is_read():
    older = b'{"type":"CompositeState/1","own":{"type":"DoorsAsked/1","times":1},"children":[],"failed":null}'
    assert decode(older, CompositeState) == CompositeState(DoorsAsked(1), ())

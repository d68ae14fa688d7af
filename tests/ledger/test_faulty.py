"""A mechanism whose code fails: charged, halted, said to be so at every ask, in every ledger; and nothing leaks."""

import pytest
from tests.carried import chained, shows
from tests.ledger.places import DATA
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.errors import DataFailed, Halted, InvalidRequest, LedgerError
from counterpoint.ledger.state import Faulty
from counterpoint.mechanisms.mechanism import Left, Mechanism, State
from counterpoint.privacy.claims import claim
from counterpoint.privacy.secret import Secret, reveal

CANARY = 8_675_309
EACH = cp.relations.every_step()
FRUIT = {**DATA, "canaries": CANARY}


class LooseState(State, Value, frozen=True):
    """A state that may hold what cannot be stored."""

    held: object = None


class Steps:
    """How often the code of a mechanism has run, and what it is to do."""

    made = 0
    trouble: BaseException | None = None


def shown(value):
    held = reveal(value)
    if held == CANARY:
        raise {0: ValueError, 1: KeyError, 2: ZeroDivisionError}[Steps.made % 3](f"it is {held}")
    return held


def panicking(state, value, coins):
    held = reveal(value)
    raise BaseExceptionGroup(f"a panic at {held}", [GeneratorExit(held)])


FAULTS = {
    "none": lambda state, value, coins: (state, reveal(value)),
    "raises": lambda state, value, coins: (state, shown(value)),
    "breaks a function": lambda state, value, coins: (state, reveal(value.map(lambda raw: 1 // (raw - CANARY)))),
    "breaks a shape": lambda state, value, coins: (state, value.map(lambda raw: (0,) * raw).width),
    "shows a secret": lambda state, value, coins: (state, str(value)),
    "panics": panicking,
    "answers a fraction of one": lambda state, value, coins: (state, reveal(value) / 2),
    "answers a secret": lambda state, value, coins: (state, value),
    "answers after drawing and fails": lambda state, value, coins: (
        state,
        shown(Secret(coins.integer(9) * 0 + CANARY)),
    ),
    "keeps a fraction of one": lambda state, value, coins: (LooseState(reveal(value) / 2), 7),
}


class Failing(Mechanism, Value, frozen=True):
    """A mechanism that fails in one way or another, if asked about canaries."""

    fault: str

    @property
    def claim(self):
        return claim(cp.PureDP("0.125"), EACH, "it fails")

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask) and message.private is not None

    def start(self, coins):
        if isinstance(Steps.trouble, ValueError):
            raise Steps.trouble
        return Left(9)

    def step(self, state, message, coins):
        Steps.made += 1
        if Steps.trouble is not None:
            held, trouble = reveal(message.private), Steps.trouble
            raise trouble from ValueError(f"it is {held}")
        return FAULTS[self.fault](state, message.private, coins)


class NothingKept(cp.mechanisms.Own, Value, frozen=True):
    """Nothing to remember."""


class AskingFirst(cp.Composite, Value, frozen=True):
    """A composite that asks, then maps with a function that is not total."""

    relation = EACH
    structure = (cp.mechanisms.Part("value", cp.PureDP("0.125"), EACH),)

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask) and message.private is not None

    def begin(self, context):
        context.launch("value", cp.Laplace("0.125", asks=9))
        return NothingKept()

    def react(self, context, own, message):
        noisy = context.ask("value", message.private)
        message.private.map(lambda raw: 1 // (raw - CANARY))
        return own, noisy


class BreakingPost(cp.mechanisms.Postprocessor, Value, frozen=True):
    """A postprocessor that breaks once it has asked."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, {}[ask(request)]


BROKEN = {name: Failing(name) for name in FAULTS if not name.startswith(("none", "keeps"))} | {
    "a composite": AskingFirst(),
    "a postprocessor": cp.postprocess(BreakingPost(), cp.Laplace("0.125", asks=9)),
}


@pytest.fixture(autouse=True)
def steps(monkeypatch):
    monkeypatch.setattr(Steps, "made", 0)
    monkeypatch.setattr(Steps, "trouble", None)


def halted(handle, request="canaries", **options):
    with pytest.raises(Halted, match="its own code failed") as info:
        handle.ask(request, **options)
    assert chained(info.value) == [] and not shows(info.value, CANARY, __file__, opened=True)
    assert str(CANARY) not in str(info.value)
    return str(info.value)


def source():
    return Numbers(FRUIT)


@pytest.mark.parametrize("name", BROKEN)
def test_a_mechanism_whose_code_fails_halts_charged_and_says_so_ever_after(place, name):
    with place.session(source=source()) as s:
        broken, other = s.launch(BROKEN[name]), s.launch(cp.Laplace("0.125", asks=9))
        said = {halted(broken, id="first")}
        made, facts = Steps.made, s._engine.ledger.history()
        assert broken.halted and s._engine.ledger.opened() == () and s.loss == cp.PureDP("0.25")
        said |= {halted(broken, id="first"), halted(broken), halted(broken, "apples"), halted(s.at(broken.path))}
        assert len(said) == 1 and Steps.made == made, "the same words, and no step is made again"
        assert s._engine.ledger.history() == facts, "nor is anything more written"
        assert isinstance(other.ask("apples"), int) and "halted" in repr(broken)
        s._engine.ledger.verify()
    if place.kind == "memory":
        return
    with place.reopened(source=source()) as s:
        broken = s.at((0,))
        assert {halted(broken, id="first"), halted(broken)} == said and broken.halted and Steps.made == made
        assert s.loss == cp.PureDP("0.25") and isinstance(s.at((1,)).ask("apples"), int)
        s._engine.ledger.verify()


def test_a_state_that_cannot_be_stored_halts_where_it_must_be(lasting):
    with lasting.session(source=source()) as s:
        handle = s.launch(Failing("keeps a fraction of one"))
        assert halted(handle, id="first") == halted(handle) and s._engine.ledger.opened() == ()
    with lasting.reopened(source=source()) as s:
        halted(s.at((0,)), id="first")


def test_what_is_said_does_not_depend_on_what_failed(place):
    with place.session(cp.PureDP(9), source=source()) as s:
        said = {halted(s.launch(Failing("raises"))) for _ in range(3)}
        assert len(said) == 1 and "Failing" in said.pop()


def test_on_other_data_the_same_mechanism_answers(place):
    with place.session(source=source()) as s:
        handle = s.launch(Failing("raises"))
        assert handle.ask("apples") == DATA["apples"] and not handle.halted
        halted(handle)


class FailingFollower(Failing, frozen=True):
    """Follows a stream, and fails on an item."""

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Update) or (
            isinstance(message, cp.mechanisms.Ask) and message.private is None
        )

    def step(self, state, message, coins):
        if isinstance(message, cp.mechanisms.Ask):
            return state, 5
        if self.fault == "halts at an update":
            return None, None
        return super().step(state, message, coins)


@pytest.mark.parametrize("fault", ["raises", "halts at an update"])
def test_a_mechanism_that_fails_on_an_item_of_a_stream_halts_at_the_ask_that_reads_it(fault):
    stream = cp.Stream(bound=10**7)
    with cp.Session(stream, cp.PureDP(1)) as s:
        handle = s.launch(FailingFollower(fault))
        assert handle.ask() == 5
        stream.extend([1, CANARY, 2])
        said = [halted(handle, None) for _ in range(2)]
        assert len(set(said)) == 1 and handle.halted and s._engine.ledger.opened() == ()


INTERRUPTIONS = [KeyboardInterrupt(), SystemExit(3)]


@pytest.mark.parametrize("interruption", INTERRUPTIONS, ids=lambda error: type(error).__name__)
def test_an_interruption_is_no_failure_and_is_finished_from_its_seed_later(place, interruption, monkeypatch):
    with place.session(source=source()) as s:
        handle = s.launch(Failing("none"))
        monkeypatch.setattr(Steps, "trouble", interruption)
        with pytest.raises(type(interruption)) as info:
            handle.ask("canaries", id="q")
        assert chained(info.value) == [] and not shows(info.value, CANARY, __file__)
        monkeypatch.setattr(Steps, "trouble", None)
        (left,) = s._engine.ledger.opened()
        assert left.request == "() q" and handle.ask("beans") == DATA["beans"] and s._engine.ledger.opened() == ()
        assert handle.ask("canaries", id="q") == CANARY and Steps.made == 3


def test_a_lack_of_memory_closes_the_data_and_the_ask_is_finished_from_its_seed_later(place, monkeypatch):
    """It may come of what the data hold, so it is seen once, in the same words for everyone."""
    with place.session(source=source()) as s:
        handle, other = s.launch(Failing("none")), s.launch(cp.Laplace("0.125", asks=9))
        monkeypatch.setattr(Steps, "trouble", MemoryError())
        with pytest.raises(DataFailed) as info:
            handle.ask("canaries", id="q")
        assert chained(info.value) == [] and not shows(info.value, CANARY, __file__)
        monkeypatch.setattr(Steps, "trouble", None)
        for asked in (handle, other):
            with pytest.raises(DataFailed) as later:
                asked.ask("beans")
            assert str(later.value) == str(info.value)
        (left,) = s._engine.ledger.opened()
        assert left.request == "() q" and Steps.made == 1 and not handle.halted
        s._engine.reopen_data()
        assert handle.ask("beans") == DATA["beans"] and s._engine.ledger.opened() == ()
        assert handle.ask("canaries", id="q") == CANARY and Steps.made == 3
        s._engine.ledger.verify()


class Unreachable(Numbers):
    """A source that breaks with raw data in its hands."""

    def resolve(self, pin, prepared):
        held = self.values[prepared.request]
        try:
            raise ValueError(f"cannot read {held}")
        except ValueError:
            raise InvalidRequest("the data cannot be reached") from None


def test_what_a_source_raises_and_the_error_after_it_carry_nothing_of_the_data(place):
    with place.session(source=Unreachable(FRUIT)) as s:
        handle = s.launch(cp.Laplace("0.125", asks=9))
        for kind, words in ((InvalidRequest, "cannot be reached"), (LedgerError, "was begun and cannot be finished")):
            with pytest.raises(kind, match=words) as info:
                handle.ask("canaries")
            assert chained(info.value) == [] and not shows(info.value, CANARY, __file__, opened=True)
        assert not handle.halted, "it waits for the data"


def test_what_was_left_open_by_a_step_that_fails_is_halted_at_the_next_start(lasting, monkeypatch):
    with lasting.session(source=source()) as s:
        broken, other = s.launch(Failing("raises")), s.launch(cp.Laplace("0.125", asks=9))
        monkeypatch.setattr(Steps, "trouble", KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            broken.ask("canaries", id="q")
        monkeypatch.setattr(Steps, "trouble", None)
        path = other.path
    with lasting.reopened(source=source()) as s:
        assert s._engine.ledger.opened() == () and isinstance(s._engine.ledger.read(broken.path).state, Faulty)
        halted(s.at(broken.path), id="q")
        assert isinstance(s.at(path).ask("apples"), int)
        s._engine.ledger.verify()


def test_a_launch_whose_start_fails_keeps_no_ledger_from_opening(lasting, monkeypatch):
    with lasting.session(source=source()) as s:
        other = s.launch(cp.Laplace("0.125", asks=9))
        monkeypatch.setattr(Steps, "trouble", ValueError("not today"))
        with pytest.raises(ValueError, match="not today"):
            s.launch(Failing("raises"), id="L")
    with lasting.reopened(source=source()) as s:
        assert isinstance(s.at(other.path).ask("apples"), int) and s.loss == cp.PureDP("0.25")
        monkeypatch.setattr(Steps, "trouble", None)
        assert s.launch(Failing("raises"), id="L").ask("apples") == DATA["apples"] and s.loss == cp.PureDP("0.25")


def test_tools_that_ask_a_struct_for_its_fields_are_shown_no_state_and_no_seed(place):
    with place.session(source=Unreachable(FRUIT)) as s:
        handle = s.launch(cp.SparseVector(epsilon="0.125", threshold=CANARY, hits=2))
        with pytest.raises(InvalidRequest):
            handle.ask("apples")
        (intent,) = s._engine.ledger.opened()
        assert list(intent.__rich_repr__()) == list(intent.row.state.__rich_repr__()) == []

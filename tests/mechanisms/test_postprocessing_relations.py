"""Postprocessing keeps a claim only where asks may be repeated, left out and redirected.

See Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16.

Each unsound construction is built by hand, without `postprocess`, and loses exactly twice what would be claimed; then
`postprocess` refuses it, and so does everything that would launch it.
"""

import pytest
from tests.mechanisms.catalogue import CATALOGUE, Forward

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.continual.counter import Counter
from counterpoint.encoding import Value, encode
from counterpoint.errors import NotAllowed, NotCovered, RelationMismatch
from counterpoint.local.properties import Asked, AtMost, Data, Guarded
from counterpoint.local.protocol import Protocol, Server
from counterpoint.local.responders import Among, Membership
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.mechanism import Left, Mechanism, accepted
from counterpoint.mechanisms.multiplicative_weights import multiplicative_weights
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.postprocessing import Failed, Postprocessed, Postprocessor, postprocess
from counterpoint.mechanisms.randomized_response import Dice, RandomizedResponse
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import (
    FirstMessage,
    OneWay,
    Steps,
    every_step,
    first_pair_consistent,
    k_sparse,
    one_step,
)
from counterpoint.privacy.secret import reveal
from counterpoint.verify.coupling import two_worlds
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import LoudNumber, OpenDoor

DIFFER = [(0, 1), (1, 0), (0, 0), (1, 1)]


class Again(Mechanism, Value, frozen=True):
    """A fresh randomized response to every ask: PureDP(1) if at most one ask differs."""

    relation: Steps = Steps(asks=1)

    @property
    def claim(self):
        return claim(PureDP(1), self.relation, "Henzinger et al. 2024, Lemma 2.4, for the one ask that differs")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return Left(9)

    def step(self, state, message, coins):
        return state, coins.call(RandomizedResponse(1).step, Left(1), message)[1]


class Twice(Postprocessor, Value, frozen=True):
    """Asks the same twice."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, (ask(request), ask(request))


class Quietly(Postprocessor, Value, frozen=True):
    """Asks once as if it brought data, which is no query, and then asks."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, (ask(Data()), ask(request))


class ToBoth(Postprocessor, Value, frozen=True):
    """Launches what it is told to, and sends everything else to both children."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request) if isinstance(request, Launch) else (ask(ToChild(0)), ask(ToChild(1)))


def loss_of(mechanism, relation, messages, rounds):
    low, high = exact(mechanism, relation, messages, rounds, cut="1e-9").epsilon_bounds(0)
    assert high - low < 1e-9
    return round(high, 9)


def asked(public=None):
    return [(Ask(public, left), Ask(public, right)) for left, right in DIFFER]


LAUNCH = Ask(Launch(RandomizedResponse(1)))
PARTS = Concurrent(Parallel(1, each=PureDP(1)), k_sparse(1, every_step()))
HELD = [*asked(Data()), (Ask(Among(1, (0, 1))),) * 2]

UNSOUND = {
    "a second ask where one may differ": (Twice(), Again(), asked("q"), 2),
    "a second query of a user who answers one": (Twice(), Membership(1, bits=1), HELD, 2),
    "a query as data, which the guard lets pass": (Quietly(), Guarded(Again(), AtMost(1)), asked("q"), 2),
    "one message for two children": (ToBoth(), PARTS, [(LAUNCH, LAUNCH), *asked(ToChild(0))], 3),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_a_postprocessor_that_leaves_the_relation_would_lose_twice_the_claim_and_is_refused(name):
    post, mechanism, messages, rounds = UNSOUND[name]
    inner, by_hand = mechanism.claim, Postprocessed(post, mechanism)
    assert inner.loss == PureDP(1) and loss_of(mechanism, inner.relation, messages, rounds) == 1
    assert loss_of(by_hand, inner.relation, messages, rounds) == 2
    with pytest.raises(NotCovered, match=r"Henzinger et al. 2024, Lemma 2\.16"):
        postprocess(post, mechanism)
    with pytest.raises(NotCovered):
        postprocess(Forward(), Forward(), mechanism)
    with pytest.raises(NotCovered):
        _ = by_hand.claim


@pytest.mark.parametrize("name", UNSOUND)
def test_nothing_launches_what_a_postprocessor_took_out_of_its_relation(name):
    post, mechanism, _, _ = UNSOUND[name]
    by_hand, coins = Postprocessed(post, mechanism), SeededCoins(1)
    for wrapped in (by_hand, Postprocessed(Forward(), by_hand)):
        with pytest.raises(NotCovered):
            Guarded(wrapped, AtMost(1))
        with pytest.raises(NotCovered):
            postprocess(Forward(), wrapped)
        with pytest.raises(NotCovered):
            Protocol(Silent(), [wrapped], k_sparse(1, every_step()), AtMost(1))
        both = Concurrent(Filter(PureDP(9)), mechanism.claim.relation)
        state = both.start(coins)
        after, refused = both.step(state, Ask(Launch(wrapped)), coins)
        assert after == state and refused.error == "NotCovered"
        with pytest.raises(NotCovered):
            Holds(mechanism.claim.relation, wrapped).start(coins)


class Silent(Server):
    def start(self):
        return None

    def turn(self, own, answers, coins):
        raise AssertionError("no round is ever reached")


class Nothing(Own, Value, frozen=True):
    """Nothing to remember."""


class Holds(Composite, Value, frozen=True):
    """One part, asked as often as it says for each ask."""

    relation: Steps
    part: Mechanism
    times: int = 1

    @property
    def structure(self):
        return (Part("only", PureDP(1), self.relation),)

    def accepts(self, message):
        return isinstance(message, Ask)

    def begin(self, context):
        context.launch("only", self.part)
        return Nothing()

    def react(self, context, own, message):
        said = [context.ask("only", message.private, message.public) for _ in range(self.times)]
        return own, tuple(answer if isinstance(answer, int) else None for answer in said)


def test_two_worlds_find_a_composite_that_asks_a_part_more_often_than_it_declares():
    """A composite does not pass a relation on: it declares one for each part, and this is how that is checked."""
    asks = [Ask(private=0)], [Ask(private=1)]
    assert two_worlds(Holds(Steps(asks=1), Again()), *asks).messages == 1
    with pytest.raises(RelationMismatch):
        two_worlds(Holds(Steps(asks=1), Again(), times=2), *asks)
    query = Ask(Among(1, (0, 1)))
    twice = Holds(Asked(every_step(), AtMost(1)), Membership(1, bits=1), times=2)
    with pytest.raises(RelationMismatch):
        two_worlds(twice, [query], [query])


def test_a_guard_bears_a_postprocessor_where_the_relation_that_its_claim_names_is_closed():
    """It refuses the second query; what is named by the claim of `Guarded` counts, not what stands behind the guard."""
    guarded = Guarded(Membership(1, bits=1), AtMost(1))
    twice = postprocess(Twice(), guarded)
    assert twice.claim.loss == PureDP(1) and twice.claim.relation == guarded.claim.relation == every_step()
    assert loss_of(twice, None, HELD, 3) == 1
    assert Protocol(Silent(), [twice], k_sparse(1, every_step())).claim.loss == PureDP(1)


AMPLE = Filter(ApproxDP(10**4, "0.9"))
REFUSED = {"OpenDoor", "LoudNumber", "InteractiveRandomizedResponse", "Membership", "BlockResponse", "Neighbourhood"}
"""Shipped mechanisms whose claims count asks, name the first message or limit the queries; the others are for all."""


@pytest.mark.parametrize("mechanism", [mechanism for mechanism, _ in CATALOGUE], ids=lambda m: type(m).__name__)
def test_every_other_shipped_mechanism_is_postprocessed_and_launches_with_the_same_claim(mechanism):
    if type(mechanism).__name__ in REFUSED:
        with pytest.raises(NotCovered):
            postprocess(Forward(), mechanism)
        return
    processed, inner = postprocess(Forward(), mechanism), mechanism.claim
    assert (processed.claim.loss, processed.claim.relation) == (inner.loss, inner.relation)
    assert postprocess(Forward(), Forward(), processed).claim.loss == inner.loss
    if type(mechanism).__name__ == "FiniteMechanism":  # it promises nothing that a budget could pay for
        return
    if type(mechanism).__name__ == "Sampled":  # it is launched where a source draws the sample, and there by itself
        return
    session, coins = Concurrent(AMPLE, inner.relation), SeededCoins(1)
    for launched in (processed, mechanism):
        state, child = session.step(session.start(coins), Ask(Launch(launched)), coins)
        assert child == 0 and session.loss(state) == AMPLE.loss(AMPLE.admit(AMPLE.start(), inner))


def test_all_refused_mechanisms_are_in_the_catalogue():
    assert REFUSED.issubset(type(mechanism).__name__ for mechanism, _ in CATALOGUE)


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(1, asks=3),
        SparseVector(1, 0, monotone=True),
        NoisyMax(1, monotone=True),
        Counter(1, per_unit=3),
        Dice(6),
        multiplicative_weights(1, 3, rows=100, margin="0.1"),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_tables_and_streams_launch_is_as_private_behind_a_postprocessor(mechanism):
    before, after = mechanism.claim, postprocess(Twice(), mechanism).claim
    assert (before.loss, before.relation) == (after.loss, after.relation)
    assert after.certificate.rests_on("Henzinger et al. 2024, Lemma 2.16")


@pytest.mark.parametrize(
    "mechanism, remedy",
    [
        (OpenDoor("0.5"), r"claim Steps\(asks=0\), which is closed"),
        (Again(one_step()), r"asks_are_public; .* claim Steps\(asks=0, updates=1, bound=1\)"),
        (Again(OneWay(Steps(asks=2, updates=3))), r"claim Steps\(asks=0, updates=3\)"),
        (Membership(1, bits=1), r"Postprocess Guarded\(mechanism, AtMost\(1\)\)"),
        (PARTS, "as a child of the composition"),
        (LoudNumber("0.5"), "compute on the answers it gives"),
    ],
)
def test_the_refusal_says_what_to_do_instead(mechanism, remedy):
    with pytest.raises(NotCovered, match=remedy):
        postprocess(Forward(), mechanism)


def test_what_the_refusal_recommends_is_taken():
    assert postprocess(Twice(), Again(Steps(asks=0))).claim.relation == Steps(asks=0)
    assert postprocess(Twice(), Guarded(Membership(1, bits=1), AtMost(1))).claim.loss == PureDP(1)
    coins, inside = SeededCoins(1), postprocess(Twice(), Laplace(1, asks=2))
    state, child = PARTS.step(PARTS.start(coins), Ask(Launch(inside)), coins)
    assert len(PARTS.step(state, Ask(ToChild(child), 5), coins)[1]) == 2


class Event(Mechanism, Value, frozen=True):
    """Tells a noisy bit of the last item; one item may differ. Its claim counts all messages, asks among them."""

    says: bool = True
    takes: bool = False

    @property
    def claim(self):
        return claim(PureDP(1), one_step(), "Henzinger et al. 2024, Lemma 2.4, for the one item that differs")

    @property
    def asks_are_public(self):
        return self.says

    def accepts(self, message):
        return isinstance(message, Update) or (isinstance(message, Ask) and (self.takes or message.private is None))

    def start(self, coins):
        return Left(9)

    def step(self, state, message, coins):
        if isinstance(message, Update):
            return Left(reveal(message.private)), None
        if message.private is not None:
            return state, reveal(message.private)
        return Left(9), coins.call(RandomizedResponse(1).step, Left(1), Ask(private=state.asks % 2))[1]


ITEMS = [(Update(left), Update(right)) for left, right in DIFFER] + [(Ask(), Ask())]


def test_any_steps_will_do_where_asks_carry_nothing_private_and_the_mechanism_says_so():
    processed = postprocess(Twice(), Event())
    assert processed.claim.relation == one_step() and processed.asks_are_public
    assert loss_of(processed, None, ITEMS, 3) == loss_of(Event(), None, ITEMS, 3) == 1
    assert postprocess(Forward(), processed).claim.relation == one_step()
    with pytest.raises(NotCovered, match="asks_are_public"):
        postprocess(Twice(), Event(says=False))


def test_a_mechanism_that_says_its_asks_are_public_is_never_sent_a_private_part():
    """Event(takes=True) would tell it in the open; its declaration is not a promise but a gate."""
    liar, coins = Event(takes=True), SeededCoins(1)
    assert liar.accepts(Ask(private=1))
    for mechanism in (liar, Guarded(liar, AtMost(5)), postprocess(Forward(), liar), postprocess(Twice(), liar)):
        with pytest.raises(Exception, match="does not accept this message"):
            accepted(mechanism, Ask(private=1))
    inner = postprocess(Forward(), liar)
    assert not inner.accepts(Ask(private=1)) and inner.accepts(Ask())
    with pytest.raises(Exception, match="does not accept this message"):
        inner.step(inner.start(coins), Ask(private=1), coins)


@pytest.mark.parametrize("mechanism, messages", CATALOGUE, ids=lambda case: type(case).__name__)
def test_shipped_mechanisms_say_rightly_whether_their_asks_are_public(mechanism, messages):
    bring = any(isinstance(message, Ask) and message.private is not None for message in messages)
    assert mechanism.asks_are_public is not bring
    shapes = [0, (0,), (0, 0), (0, 0, 0)]
    assert not (mechanism.asks_are_public and any(mechanism.accepts(Ask(private=shape)) for shape in shapes))


SEEN = []


class Curious(Postprocessor, Value, frozen=True):
    """Looks at all that it is given when it is asked what it takes."""

    def start(self):
        return None

    def accepts(self, ask):
        SEEN.append(ask)
        return True

    def react(self, own, request, ask):
        return own, ask(request)


@pytest.mark.parametrize("private, blank", [(41, 0), ((3, -(2**80)), (0, 0)), ((), ())])
def test_a_postprocessor_decides_what_it_takes_on_an_ask_whose_private_part_is_blank(private, blank):
    SEEN.clear()
    ask = Ask("q", private, sensitivity=5, squared=7, each=2, one_way=True)
    assert postprocess(Curious(), Laplace(1)).accepts(ask)
    (seen,) = SEEN
    assert reveal(seen.private) == blank
    public = (seen.public, seen.sensitivity, seen.squared, seen.each, seen.one_way)
    assert public == ("q", 5, 7, 2, True), "all that is public about the ask is the same"


KEPT = []


class Hoarder(Postprocessor, Value, frozen=True):
    """Keeps what it could have asked with, and asks with it when the next request comes."""

    def start(self):
        return None

    def react(self, own, request, ask):
        KEPT.append(ask)
        return own, None if len(KEPT) == 1 else (ask(request), KEPT[0](request))


def test_what_a_postprocessor_asks_with_ends_with_its_request():
    """One that was kept would ask the state of that time, and so a mechanism of one answer a second time."""
    KEPT.clear()
    hoarding, coins = postprocess(Hoarder(), Laplace(1)), SeededCoins(1)
    state, nothing = hoarding.step(hoarding.start(coins), Ask(private=100), coins)
    assert nothing is None
    assert hoarding.step(state, Ask(private=100), coins) == (None, Failed("NotAllowed"))
    with pytest.raises(NotAllowed, match="next one"):
        KEPT[0]()


def test_a_composition_of_claims_about_first_messages_is_not_postprocessed():
    static = Concurrent(Parallel(1, each=PureDP(1), first_pair=True), first_pair_consistent(1, FirstMessage()))
    with pytest.raises(NotCovered):
        postprocess(Forward(), static)
    assert encode(Postprocessed(Forward(), static)), "it can be written and read, and has no claim"

"""Postprocessors run in the client: the same as before a local mechanism, and nothing of them is sent."""

import threading
from fractions import Fraction

import httpx
import pytest
from tests.service.places import PLACES, in_process

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.mechanisms.additive import Range
from counterpoint.mechanisms.guess_and_check import Guess, LinearGuess
from counterpoint.mechanisms.noisy_max import Largest
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.privacy.claims import Claim
from counterpoint.wire.requests import encode_exactly, encode_public


class Tens(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Rounds to tens."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, round(ask(), -1)


class Cached(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Asks while the mechanism answers, and then says what it remembers; by `fresh=False`, without asking."""

    def public_part(self, grid, /, **options):
        return bool(options.get("fresh", True))

    def start(self):
        return 0

    def react(self, own, request, ask):
        last = own if ask.halted or not request else ask()
        return last, last


class Bisect(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Finds a count between 0 and 128 by comparisons with a sparse vector."""

    def start(self):
        return 0

    def react(self, own, request, ask):
        low, high = 0, 128
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if ask(Threshold(middle)) else (low, middle)
        return own + 1, (low, own)


class Tossed(cp.mechanisms.Postprocessor, Value, frozen=True):
    def start(self):
        return None

    def react(self, own, request, ask):
        return own, (ask(), ask.coins.integer(10**12))


class Broken(cp.mechanisms.Postprocessor, Value, frozen=True):
    asks: bool

    def start(self):
        return None

    def react(self, own, request, ask):
        if self.asks:
            ask()
        raise ZeroDivisionError


class Careful(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Says what went wrong with an ask."""

    def start(self):
        return None

    def react(self, own, request, ask):
        try:
            return own, ask(("not", "a", "threshold"))
        except cp.errors.InvalidRequest:
            return own, "refused"


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    with PLACES[request.param](tmp_path) as found:
        yield found


@pytest.fixture
def session(place):
    return place.session("people")


def test_a_postprocessor_answers_for_the_mechanism_that_was_paid_for(session):
    rounded = session.launch(cp.postprocess(Tens(), cp.Laplace(2000, asks=3)))
    assert rounded.ask(cp.count("age > 35")) == 60 and rounded.ask(cp.count("age > 55")) == 20
    assert isinstance(rounded.mechanism, Postprocessed) and rounded.mechanism.mechanism == cp.Laplace(2000, asks=3)
    assert rounded.cost == session.loss == cp.PureDP(2000) and rounded.path == (0, 0)
    assert rounded.ask(cp.sum("hours")) == Fraction(250)
    with pytest.raises(cp.CounterpointError):
        rounded.ask(cp.count())


def test_an_answer_without_an_ask_needs_no_ask(session):
    cached = session.launch(cp.postprocess(Cached(), cp.Laplace(3000, asks=2)))
    assert cached.ask(cp.count("age > 35"), fresh=False) == 0
    assert [cached.ask(cp.count("age > 35")) for _ in range(4)] == [60] * 4
    assert cached.ask(cp.sum("hours"), fresh=False) == 30, "60 steps of half an hour"
    assert not cached.halted
    asked = [fact for fact in session.history if fact.kind == "ask"]
    assert len(asked) >= 2


def test_it_asks_as_often_as_it_likes_with_public_parts_of_its_own(session):
    sparse = cp.SparseVector(6000, threshold=0, hits=20)
    found = session.launch(cp.postprocess(Bisect(), sparse))
    assert [found.ask(cp.count("age > 35")) for _ in range(2)] == [(60, 0), (60, 1)]
    assert session.loss == cp.PureDP(6000)


def test_postprocessors_chain_and_nest(session):
    chained = session.launch(cp.postprocess(Tens(), Cached(), cp.Laplace(2000, asks=2)))
    nested = session.launch(cp.postprocess(Tens(), cp.postprocess(Cached(), cp.Laplace(2000, asks=2))))
    for handle in (chained, nested):
        with pytest.raises(cp.CounterpointError):
            handle.ask(cp.count("age > 35"), fresh=True)
        assert handle.ask(cp.count("age > 35")) in (0, 60)


def test_the_same_id_gets_the_same_answer_and_another_request_under_it_is_a_conflict(session):
    tossed = session.launch(cp.postprocess(Tossed(), cp.Laplace(1, asks=9)))
    first = tossed.ask(cp.count(), id="monday")
    assert tossed.ask(cp.count(), id="monday") == first != tossed.ask(cp.count(), id="tuesday")
    with pytest.raises(cp.errors.RequestConflict):
        tossed.ask(cp.count("age > 35"), id="monday")


@pytest.mark.parametrize("asks", [False, True])
def test_one_whose_code_fails_has_halted_and_its_charge_stays(session, asks):
    broken = session.launch(cp.postprocess(Broken(asks), cp.Laplace(1, asks=9)))
    for _ in range(2):
        with pytest.raises(cp.errors.Halted, match="its own code failed"):
            broken.ask(cp.count())
    assert broken.halted and session.loss == cp.PureDP(1)


def test_what_the_mechanism_does_not_accept_is_an_error_that_a_postprocessor_may_catch(session):
    careful = session.launch(cp.postprocess(Careful(), cp.SparseVector(1, threshold=10)))
    assert careful.ask(cp.count()) == "refused"
    plain = session.launch(cp.postprocess(Tens(), cp.Laplace(1, asks=2)))
    with pytest.raises(cp.errors.InvalidRequest):
        plain.ask(cp.count(), depth=3)
    with pytest.raises(cp.errors.InvalidRequest):
        plain.ask(cp.mean("wage"))
    with pytest.raises(cp.errors.NotCovered):
        plain.error(cp.count())


def test_multiplicative_weights_run_before_the_checks_that_they_are_made_for(session):
    weights = cp.mechanisms.MultiplicativeWeights(epsilon=5000, universe=2, rows=100, margin=0.05, updates=4)
    learned = session.launch(cp.postprocess(weights, weights.checks))
    answers = [learned.ask(cp.histogram("state"), weights=[1, 0]) for _ in range(2)]
    assert answers[0] == ("WRONG", 60) and answers[1][0] == "PASS" and abs(answers[1][1] - 60) <= 6
    assert session.loss == cp.PureDP(5000)


def test_counters_and_windows_are_postprocessed_and_followed(place):
    session, stream = place.session("visits"), place.stream("visits")
    counted = session.launch(cp.postprocess(Tens(), cp.Counter(epsilon=1000)), of=cp.count())
    recent = session.launch(cp.postprocess(Tens(), cp.Counter(epsilon=1000, window=12)), of=cp.count())
    window = session.launch(cp.Counter(epsilon=1000, window=3), of=cp.count())
    stream.extend([{"page": "shop", "seconds": 1}] * 21)
    assert (counted.ask(), recent.ask(), window.ask()) == (20, 10, 3)
    with pytest.raises(cp.errors.InvalidRequest):
        place.session("people").launch(cp.postprocess(Tens(), cp.Counter(epsilon=1)))


def test_a_price_is_that_of_the_mechanism(session):
    whole = cp.postprocess(Tens(), cp.Laplace(2))
    quoted = session.would_cost(whole)
    assert (quoted.cost, quoted.after, quoted.fits, quoted.mechanism) == (cp.PureDP(2), cp.PureDP(2), True, whole)
    with pytest.raises(cp.BudgetExceeded):
        session.launch(cp.postprocess(Tens(), cp.Laplace(10**6)))
    assert session.loss == cp.PureDP(0)


def test_a_claim_that_would_not_outlive_a_postprocessor_is_refused_for_free(session, monkeypatch):
    one_ask, kept = cp.relations.Steps(asks=1), cp.Laplace.claim.fget  # no mechanism on the list has such a relation
    monkeypatch.setattr(
        cp.Laplace, "claim", property(lambda self: Claim(kept(self).loss, one_ask, kept(self).certificate))
    )
    assert not one_ask.closed
    whole = Postprocessed(Tens(), cp.Laplace(1))
    for refused in (session.launch, session.would_cost):
        with pytest.raises(cp.errors.NotCovered, match="need a closed relation"):
            refused(whole)
    assert session.loss == cp.PureDP(0) and session.handles == ()


class Thrice(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Three asks, and how many there were before."""

    def start(self):
        return 0

    def react(self, own, request, ask):
        return own + 3, (ask(), ask(), ask(), ask.halted, ask.coins.integer(10**12), own)


class Guessing(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Tosses the threshold that it asks about."""

    def start(self):
        return None

    def react(self, own, request, ask):
        at = ask.coins.integer(10**12)
        return own, (at, ask(Threshold(at)))


class Torn(httpx.BaseTransport):
    """Carries calls, and loses the answers to those that `lost` says; `sent` is all that went out."""

    def __init__(self, inner, lost):
        self._inner, self._lost, self.sent = inner, lost, []

    def handle_request(self, request):
        self.sent.append((request.headers.get("idempotency-key"), request.url.path, request.content))
        response = self._inner.handle_request(request)
        asks = len([one for one in self.sent if one[1].endswith("/asks")])
        if request.url.path.endswith("/asks") and self._lost(asks):
            raise httpx.ReadTimeout("lost", request=request)
        return response


@pytest.fixture
def served(tmp_path):
    with in_process(tmp_path) as found:
        found.session("people")
        yield found


def test_an_ask_that_was_lost_on_its_way_goes_on_where_it_was(served):
    lost = [2, 3]
    torn = Torn(served.transport, lambda asks: asks in lost)
    connection = served.connect("ann", torn)
    connection._tries = 1
    sparse = connection.session("people").launch(cp.postprocess(Thrice(), cp.Laplace(1, asks=6)))
    with pytest.raises(cp.errors.ServiceFailed) as failed:
        sparse.ask(cp.count(), id="monday")
    assert failed.value.__notes__ == ["Repeat the ask with id='monday': it goes on where it was."]
    with pytest.raises(cp.errors.ServiceFailed):
        sparse.ask(cp.count(), id="monday")
    first = sparse.ask(cp.count(), id="monday")
    asks = [id for id, path, _ in torn.sent if path.endswith("/asks")]
    assert asks == ["monday/1", "monday/2", "monday/2", "monday/2", "monday/3"]
    assert first[5] == 0 and not first[3] and sparse.ask(cp.count(), id="monday") == first
    second = sparse.ask(cp.count())
    assert second[5] == 3 and second[3] and len({*first[:3], *second[:3]}) > 1
    assert served.session("people").loss == cp.PureDP(1)
    assert len([fact for fact in served.session("people").history if fact.kind == "ask"]) == 6


def test_an_ask_that_is_made_again_tosses_the_same_coins(served):
    connection = served.connect("ann", Torn(served.transport, lambda asks: asks == 1))
    connection._tries = 1
    guessed = connection.session("people").launch(cp.postprocess(Guessing(), cp.SparseVector(1, threshold=0)))
    with pytest.raises(cp.errors.ServiceFailed):
        guessed.ask(cp.count(), id="monday")
    at, above = guessed.ask(cp.count(), id="monday")
    assert at > 100 and not above


def test_nothing_of_a_postprocessor_is_sent(served):
    torn = Torn(served.transport, lambda asks: False)
    session = served.connect("ann", torn).session("people")
    session.launch(cp.postprocess(Cached(), cp.Laplace(1, asks=6))).ask(cp.count(), fresh=True)
    assert len(torn.sent) == 6 and not any(b"Cached" in body or b"fresh" in body for _, _, body in torn.sent)


def test_one_that_is_launched_again_by_its_id_starts_afresh_before_the_same_mechanism(served):
    session = served.session("people")
    first, again = (session.launch(cp.postprocess(Thrice(), cp.Laplace(1, asks=6)), id="one") for _ in range(2))
    assert first.path == again.path and first.ask(cp.count())[5] == again.ask(cp.count())[5] == 0
    third = session.launch(cp.postprocess(Cached(), cp.Laplace(1, asks=6)), id="one")
    assert third.ask(cp.count()) == 0, "the mechanism has halted, which is known from the launch"
    with pytest.raises(cp.errors.Halted):
        first.ask(cp.count())


def test_threads_ask_one_postprocessor_in_turn(served):
    handle = served.session("people").launch(cp.postprocess(Thrice(), cp.Laplace(1, asks=100)))
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(handle.ask(cp.count())[5])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [3 * turn for turn in range(8)]
    assert not handle._answers and not handle._attempts, "nothing is kept that cannot be asked for again"


ASKED = [
    cp.count(),
    cp.histogram("state"),
    cp.top("state", 2),
    cp.quantile("age", 0.5),
    cp.keys("town"),
    cp.mean("age"),
]
PARTS = [None, 3, "x", (1, 2), Threshold(5), Largest(1), Largest(9), Range(0, 5), Guess(3), LinearGuess((1, 0), 3)]
LAUNCHED = [
    cp.Laplace(1, asks=99),
    cp.Laplace(1, asks=99, clamp=(0, 10)),
    cp.SparseVector(1, threshold=0, hits=99),
    cp.NoisyMax(1, asks=99),
    cp.GuessAndCheck(1, margin=5, wrong=99),
    cp.LinearGuessAndCheck(cp.GuessAndCheck(1, margin=5, wrong=99), universe=2),
]


@pytest.mark.parametrize("mechanism", LAUNCHED, ids=repr)
def test_whatever_public_part_comes_with_whatever_request_is_answered_or_refused(served, mechanism):
    handle = served.session("people").launch(mechanism)
    url, post = f"/v1/handles/{handle._id}/asks", handle._service._client.post
    codes = set()
    for asked in ASKED:
        for part in PARTS:
            body = {"request": encode_exactly(asked, "request"), "public": encode_public(part)}
            codes.add(post(url, json=body).status_code)
    assert codes == {201, 422} and not handle.halted


def test_a_public_part_stands_alone(served):
    handle = served.session("people").launch(cp.SparseVector(1, threshold=0, hits=3))
    call = handle._service._client
    said = {"exact": '{"type":"Threshold/1","at":"5"}'}
    for body in ({"public": said, "options": {"threshold": 1}}, {"public": {"threshold": 5}}, {"public": {}}):
        asked = {"request": {"request": "count"}, **body}
        assert call.post(f"/v1/handles/{handle._id}/asks", json=asked).status_code == 422
    assert served.session("people").history[-1].kind == "launch"

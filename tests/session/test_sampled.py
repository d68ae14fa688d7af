"""Sampled launches and delegated sessions on one sample: what they cost, what they see, and what is refused."""

import pyarrow as pa
import pytest
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place
from tests.ledger.test_sealing import dumped
from tests.mechanisms.catalogue import Forward

import counterpoint as cp
from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter, NotCovered, RelationMismatch
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.privacy.relations import OfSample, every_step
from counterpoint.privacy.samples import amplified

UNITS = 400
SURE = 10**5  # an epsilon at which the noise of an answer is 0, but for less than one in a billion
KEY = bytes(range(32))


def people(**more):
    data = {"who": list(range(UNITS)), "city": ["x", "y"] * (UNITS // 2)}
    return cp.Table(pa.table(data), unit="who", rows_per_unit=1, key=KEY, **more)


def visits(**more):
    return cp.Stream(fields={"page": cp.text()}, unit="user", per_unit=2, neighbours="add-or-remove", **more)


def unlimited(source):
    return cp.Session(source, within=cp.ApproxDP(10**9, "0.5"))


def who(asked):
    """Who is in the sample that answers."""
    return tuple(asked.ask(cp.histogram("who", keys=list(range(UNITS)))))


def test_a_sampled_launch_is_charged_its_amplified_claim():
    session = cp.Session(people(), within=cp.ApproxDP(1, "1e-6"))
    sampled = cp.Sampled(cp.PartitionSelection(epsilon=1, delta="1e-6"), rate="0.01")
    assert session.would_cost(sampled).cost == amplified(cp.ApproxDP(1, "1e-6"), sampled.rate)
    handle = session.launch(sampled)
    assert handle.cost.delta == cp.ApproxDP(1, "1e-8").delta and 0.01703 < handle.cost.epsilon < 0.01704
    assert session.loss.epsilon == handle.cost.epsilon
    assert "theory, Sampling" in str(session.certificate())


@pytest.mark.parametrize("epsilon", ["1e-30", "0.5", 3, 700, 10**6, "1e50"])
@pytest.mark.parametrize("rate", ["1e-12", "0.3", "0.999999"])
def test_the_amplified_epsilon_is_rounded_up_and_never_above_epsilon(epsilon, rate):
    from mpmath import expm1, log1p, mp, mpf

    found = amplified(cp.PureDP(epsilon), cp.PureDP(rate).epsilon).epsilon
    with mp.workdps(80):
        true = log1p(mpf(rate) * expm1(mpf(epsilon)))
        assert true <= mpf(found.numerator) / found.denominator <= true * (1 + mpf(10) ** -40)
    assert found <= cp.PureDP(epsilon).epsilon


def test_all_asks_of_a_launch_see_one_sample_and_two_launches_see_two():
    session = unlimited(people())
    one, other = (session.launch(cp.Sampled(cp.Laplace(SURE * 9, asks=9), rate="0.3")) for _ in range(2))
    assert who(one) == who(one) == who(one) != who(other)
    assert 0 < sum(who(one)) < UNITS


def test_a_mechanism_with_state_runs_on_its_sample():
    session = unlimited(people())
    vector = session.launch(cp.Sampled(cp.SparseVector(SURE, threshold=UNITS - 1, hits=1), rate="0.5"))
    assert vector.ask(cp.count()) is False  # there are UNITS people, and not that many in the sample
    assert vector.ask(cp.count(), threshold=1) is True
    assert vector.halted


def test_a_counter_follows_the_units_of_its_sample():
    stream = visits()
    session = unlimited(stream)
    early = [session.launch(cp.Sampled(cp.Counter(SURE), rate="0.5"), of=cp.count()) for _ in range(2)]
    seen = []
    for _ in range(2):
        stream.extend({"page": "home", "user": f"u{n}"} for n in range(100))
        seen.append([counter.ask() for counter in early])
    assert seen[1] == [2 * n for n in seen[0]] and 0 < seen[0][0] < 100  # the same units again


def test_the_stated_error_is_that_of_the_noise_on_the_sample():
    session = unlimited(people())
    plain, sampled = cp.Laplace("0.1"), cp.Sampled(cp.Laplace("0.1"), rate="0.5")
    assert session.launch(sampled).error(cp.count()) == session.launch(plain).error(cp.count())


def test_a_delegated_session_sees_one_sample_in_everything_and_costs_it_once():
    session = cp.Session(people(), within=cp.PureDP(10**7))
    inner = session.delegate(cp.PureDP(10**7), sampled="0.3")
    assert session.loss == amplified(cp.PureDP(10**7), cp.PureDP("0.3").epsilon)
    first, second = (inner.launch(cp.Laplace(SURE * 9, asks=9)) for _ in range(2))
    sample = who(first)
    assert sample == who(second) == who(first) and 0 < sum(sample) < UNITS
    assert inner.ask(cp.count(), epsilon=SURE) == sum(sample)
    parts = inner.partition("city", within=cp.PureDP(SURE))
    halves = [parts[city].ask(cp.count(), epsilon=SURE) for city in "xy"]
    assert halves == [sum(sample[0::2]), sum(sample[1::2])]
    deeper = inner.delegate(cp.PureDP(SURE * 3))
    assert deeper.ask(cp.count(), epsilon=SURE) == sum(sample)
    assert who(inner.at(first.path)) == sample
    assert session.given[0].ask(cp.count(), epsilon=SURE) == sum(sample)


def test_what_a_delegated_session_loses_on_its_sample_is_its_own_and_refused_by_its_own_budget():
    session = cp.Session(people(), within=cp.PureDP(1))
    inner = session.delegate(cp.PureDP(2), sampled="0.1")
    inner.launch(cp.Laplace("1.5"))
    assert inner.loss == cp.PureDP("1.5") and inner.remaining.epsilon == cp.PureDP("0.5").epsilon
    with pytest.raises(cp.BudgetExceeded):
        inner.launch(cp.Laplace(1))
    assert session.loss.epsilon < 0.5


def test_other_measures_are_delegated_on_a_sample_with_a_delta():
    session = cp.Session(people(), within=cp.ApproxDP(1, "1e-5"))
    with pytest.raises(NotCovered, match="say delta="):
        session.delegate(cp.zCDP("0.1"), sampled="0.01")
    with pytest.raises(NotCovered, match="say delta="):
        session.launch(cp.Sampled(cp.Gaussian("0.1"), rate="0.01"))
    inner = session.delegate(cp.zCDP("0.1"), delta="1e-6", sampled="0.01")
    assert session.loss.epsilon < 0.08 and inner.launch(cp.Gaussian("0.1")).ask(cp.count()) is not None
    once = cp.Sampled(cp.Gaussian("0.1"), rate="0.01", delta="1e-6")
    assert session.launch(once).cost == amplified(cp.GaussianDP(rho="0.1").as_approx("1e-6"), once.rate)


def test_a_group_counts_with_the_amplified_claim_also_of_a_session():
    session = cp.Session(people(), within=cp.PureDP(5))
    session.delegate(cp.PureDP(1), sampled="0.1").launch(cp.Laplace("0.5"))
    session.launch(cp.Sampled(cp.Laplace(1), rate="0.1"))
    each = amplified(cp.PureDP(1), cp.PureDP("0.1").epsilon).epsilon
    assert session.loss_at(distance=3).epsilon == 6 * each


def test_a_granted_session_may_be_on_a_sample_and_is_not_recounted():
    session = cp.Session(people(), within=cp.PureDP(5))
    hers = session.grant("ann", cp.PureDP(1), sampled="0.1")
    hers.launch(cp.Laplace("0.5"))
    session.revoke(hers)
    with pytest.raises(NotCovered, match="cannot be returned"):
        session.recount(hers)


def test_a_rehearsal_samples_made_up_rows():
    session = cp.Session(people(), within=cp.PureDP(10**7))
    rehearsal = session.rehearse()
    sampled = rehearsal.launch(cp.Sampled(cp.Laplace(SURE), rate="0.5")).ask(cp.count())
    assert sampled.made_up
    inner = session.delegate(cp.PureDP(10**6), sampled="0.5").rehearse()
    assert inner.ask(cp.count(), epsilon=1).made_up and session.loss.epsilon > 10**5


REPLACED = {"neighbours": "replace"}


@pytest.mark.parametrize(
    "source, mechanism, why",
    [
        (people(**REPLACED), cp.Laplace(1), "by replacement"),
        (cp.Stream(bound=1), cp.Counter(1), "by replacement"),
        (cp.LiveTable(columns={"n": cp.number(0, 1)}, unit="u", key="k", rows_per_unit=1), cp.Laplace(1), "LiveTable"),
    ],
)
def test_data_that_cannot_be_sampled_refuse_launch_delegation_and_quote(source, mechanism, why):
    session, sampled = cp.Session(source, within=cp.PureDP(9)), cp.Sampled(mechanism, rate="0.5")
    for refused in (
        lambda: session.launch(sampled),
        lambda: session.would_cost(sampled),
        lambda: session.delegate(cp.PureDP(1), sampled="0.5"),
    ):
        with pytest.raises(NotCovered, match=why):
            refused()
    assert session.loss == cp.PureDP(0)


def test_a_sampled_mechanism_takes_no_messages_that_are_made_from_all_units():
    """A composition by itself has no source, and so draws no sample: the amplified claim would be false there."""
    sampled, both = cp.Sampled(cp.Laplace(1), rate="0.1"), Concurrent(cp.Filter(cp.PureDP(9)), every_step())
    coins = SeededCoins(1)
    _, answer = both.step(both.start(coins), cp.mechanisms.Ask(Launch(sampled)), coins)
    assert isinstance(answer, Refused) and answer.error == "RelationMismatch"
    with pytest.raises(NotCovered, match="unit by unit"):
        cp.verify.exact(sampled, messages=[(cp.mechanisms.Ask(private=0), cp.mechanisms.Ask(private=1))], rounds=1)
    rule = session_rule("0.1")
    with pytest.raises(NotCovered, match="a secret sample"):
        Concurrent(rule, every_step()).claim  # noqa: B018
    with pytest.raises(NotCovered, match="a secret sample"):
        rule.bound(OfSample(cp.PureDP("0.2").epsilon, every_step()))  # a larger sample than it promises for


def test_a_claim_about_a_sample_covers_no_larger_one():
    small, large = (OfSample(cp.PureDP(rate).epsilon, every_step()) for rate in ("0.1", "0.2"))
    assert small.within(large) and not large.within(small) and not every_step().within(large)


def session_rule(rate):
    from counterpoint.composition.restated import Amplified

    return Amplified(cp.Filter(cp.PureDP(1)), rate)


def test_a_postprocessor_stands_inside_the_sample():
    session = unlimited(people())
    with pytest.raises(RelationMismatch):
        session.launch(cp.postprocess(Forward(), cp.Sampled(cp.Laplace(1), rate="0.1")))
    inside = session.launch(cp.Sampled(cp.postprocess(Forward(), cp.Laplace(SURE)), rate="0.5"))
    assert 0 < inside.ask(cp.count()) < UNITS


@pytest.mark.parametrize(
    "wrong, why",
    [
        (lambda: cp.Sampled(cp.Sampled(cp.Laplace(1), "0.5"), "0.5"), "multiply the two rates"),
        (lambda: cp.Sampled(Concurrent(cp.Filter(cp.PureDP(1)), every_step()), "0.5"), "session.delegate"),
        (lambda: cp.Sampled("Laplace", "0.5"), "takes a mechanism"),
        (lambda: cp.Sampled(cp.Laplace(1), 1), "above 0 and below 1"),
    ],
)
def test_what_is_not_sampled_so_says_what_to_do(wrong, why):
    with pytest.raises(InvalidParameter, match=why):
        wrong()


def test_the_sample_outlives_the_process_and_stands_nowhere_in_the_open(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(10**8), source=people()) as session:
        handle = session.launch(cp.Sampled(cp.Laplace(SURE * 9, asks=9), rate="0.3"), id="one")
        inner = session.delegate(cp.PureDP(10**7), sampled="0.3", id="two")
        asked = inner.launch(cp.Laplace(SURE * 9, asks=9))
        samples = who(handle), who(asked)
        keys = [
            session._engine.ledger.read(handle.path).state.sample,
            session._engine.ledger.read(inner._path).state.sample,
        ]
        session._engine.ledger.verify()
    stored = b"".join(dumped(place))
    for sample in keys:
        assert sample.secret.encode() not in stored and str(sample.key.__sealed__()).encode() not in stored
    with place.reopened(source=people()) as session:
        again = session.launch(cp.Sampled(cp.Laplace(SURE * 9, asks=9), rate="0.3"), id="one")
        assert again.path == handle.path and who(again) == samples[0]
        same = session.delegate(cp.PureDP(10**7), sampled="0.3", id="two")
        assert who(same.at(asked.path)) == samples[1]
        same.launch(cp.Laplace(1))
        assert who(session.at(asked.path)) == samples[1]
        session._engine.ledger.verify()


@pytest.mark.parametrize("at", [9, 12, 16, 20, 24])
def test_a_crash_at_a_launch_or_an_ask_draws_no_second_sample(at, tmp_path):
    place = Place("sqlite", tmp_path)

    def work(say):
        session = place.session(cp.PureDP(10**8), source=people(), reached=Killer(at))
        inner = session.delegate(cp.PureDP(10**7), sampled="0.3", id="one")
        asked = inner.launch(cp.Laplace(SURE * 9, asks=9), id="two")
        say(asked.ask(cp.count(), id="three"))

    said, _ = in_child(work)
    with place.session(cp.PureDP(10**8), source=people()) as session:
        inner = session.delegate(cp.PureDP(10**7), sampled="0.3", id="one")
        asked = inner.launch(cp.Laplace(SURE * 9, asks=9), id="two")
        first = asked.ask(cp.count(), id="three")
        assert first == asked.ask(cp.count()) and said in ([], [str(first)])
        assert len(session.given) == 1
        session._engine.ledger.verify()


def test_without_the_key_charges_are_read_and_the_sample_is_not(tmp_path):
    from counterpoint.ledger.sealed_rows import seen_row, stored_row
    from counterpoint.ledger.sealing import DataKeys, MasterKey
    from counterpoint.ledger.state import LaunchRecord, SessionState, sample_of
    from counterpoint.privacy.samples import Sample

    master = MasterKey(bytes(32))
    keys = DataKeys("people", master, (DataKeys.fresh("people", 0, master),))
    rule = session_rule("0.1")
    relation = OfSample(rule.rate, every_step())
    row = LaunchRecord(
        Concurrent(rule, relation), SessionState(rule.start(), sample=Sample.drawn(rule.rate, SeededCoins(1)))
    )
    stored = stored_row((0,), row, keys)
    assert seen_row(stored, keys) == row
    seen = seen_row(stored, DataKeys("people", None, ()))
    assert seen.state == row.state.in_public
    with pytest.raises(cp.errors.Unsealable):
        sample_of(seen.state)

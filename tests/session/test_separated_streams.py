"""Sessions on streams whose units have items far from each other: what is launched, what is refused, what is stored."""

import pytest

import counterpoint as cp
from counterpoint.privacy.relations import MinSeparation, Steps

BUDGET = cp.zCDP(10**12)  # so much that there is no noise


def phones(**options):
    return cp.Stream(unit="phone", per_unit=2, apart=3, **options)


def session_of(stream, **options):
    return cp.Session(stream, within=BUDGET, **options)


def test_a_counter_is_launched_for_items_that_are_far_from_each_other():
    stream = phones()
    handle = session_of(stream).launch(cp.Counter(rho=10**9))
    assert handle.mechanism == cp.Counter(rho=10**9, bound=1, per_unit=2, clamp=False, min_separation=3)
    assert "each at least 3 updates after the one before" in str(handle.mechanism.claim.certificate)
    stream.extend([1] * 5, units=["a", "a", "b", "a", "a"])
    assert handle.ask() == 3, "the second is too near to the first, and so is the last to the fourth"
    stream.extend([1] * 3, units=["a", "b", "b"])
    assert handle.ask() == 4, "a has had its two items; b's second is at place 6"


def test_windows_vectors_and_requests_follow_such_streams():
    stream = phones(fields={"kind": cp.category(["call", "text"])})
    session = session_of(stream)
    kinds = session.launch(cp.Counter(rho=10**9), of="kind")
    recent = session.launch(cp.Counter(rho=10**9, window=3), of=cp.count(where="kind = 'call'"))
    assert (kinds.mechanism.width, kinds.mechanism.min_separation) == (2, 3)
    assert (recent.mechanism.window, recent.mechanism.min_separation) == (3, 3)
    for phone, kind in [("a", "call"), ("a", "call"), ("b", "text"), ("a", "call"), ("b", "call"), ("b", "call")]:
        stream.append({"phone": phone, "kind": kind})
    assert kinds.ask() == (3, 1) and recent.ask() == 2


def test_an_own_number_of_items_and_pure_privacy_keep_the_counter():
    session = session_of(phones())
    assert session.launch(cp.Counter(rho=1, per_unit=2)).mechanism.claim.relation == Steps(updates=2, bound=1)
    assert session.launch(cp.Counter(1)).mechanism == cp.Counter(1, bound=1, per_unit=2, clamp=False)


def test_a_grant_of_counters_covers_all_of_them_and_nothing_else():
    session = session_of(phones(fields={"kind": cp.category(["call", "text"])}))
    hers = session.grant("ann", cp.zCDP(4), mechanisms=[cp.Counter])
    calls, last = cp.count(where="kind = 'call'"), cp.Counter(rho=1, window=7)
    single, wide, window = (
        hers.launch(it, of=of) for it, of in [(cp.Counter(rho=1), calls), (cp.Counter(rho=1), "kind"), (last, calls)]
    )
    assert (single.mechanism.min_separation, wide.mechanism.width, window.mechanism.window) == (3, 2, 7)
    his = session.grant("bob", cp.zCDP(1), mechanisms=[cp.Gaussian])
    with pytest.raises(cp.errors.NotGranted, match="'bob' was granted Gaussian here, not Counter"):
        his.launch(cp.Counter(rho=1), of=calls)


def test_a_counter_for_greater_distances_is_refused_and_told_what_would_fit():
    for stream in (phones(), cp.Stream(unit="phone", per_unit=2), cp.Stream(unit="phone", per_unit=2, apart=4)):
        session = session_of(stream)
        with pytest.raises(cp.errors.RelationMismatch, match=r"at least 5 places apart \(apart=...\) would fit"):
            session.launch(cp.Counter(rho=1, per_unit=2, min_separation=5))
        assert session.loss == cp.zCDP(0)
    assert session_of(phones()).launch(cp.Counter(rho=1, min_separation=2)).mechanism.per_unit == 2


def test_a_single_item_of_a_unit_needs_no_distance_and_a_counter_that_declares_one_fits_all_the_same():
    session = session_of(cp.Stream(unit="phone", per_unit=1, apart=3))
    assert session.launch(cp.Counter(rho=1)).mechanism == cp.Counter(rho=1, bound=1, per_unit=1, clamp=False)
    assert session.launch(cp.Counter(rho=1, min_separation=3)).mechanism.per_unit == 1


def test_parts_delegations_and_samples_of_such_streams_have_the_same_distances():
    stream = phones(fields={"kind": cp.category(["call", "text"])}, neighbours="add-or-remove")
    session = cp.Session(stream, within=cp.ApproxDP(1, 1e-6))
    far = MinSeparation(Steps(updates=2, bound=1), 3)
    assert stream.part("kind", "call").of().relation == stream.of().relation == far
    inner = session.delegate(cp.ApproxDP("0.5", 1e-7))
    assert inner.launch(cp.Counter(rho="0.0001")).mechanism.claim.relation == far
    sampled = session.launch(cp.Sampled(cp.Counter(rho="0.00001", min_separation=3), "0.1", delta=1e-8))
    assert sampled.mechanism.mechanism.per_unit == 2


def test_several_streams_keep_the_distances_of_the_one_that_is_followed():
    both = cp.Sources(unit="phone", calls=phones(), texts=cp.Stream(unit="phone", per_unit=1))
    assert both.of("calls").relation == MinSeparation(Steps(updates=2, bound=1), 3)
    assert both.relation == Steps(updates=3, bound=1)


def test_a_durable_stream_goes_on_with_what_it_knows_of_distances(tmp_path):
    place, stream = tmp_path / "ledger.db", phones()
    with cp.Session(stream, within=BUDGET, ledger=place, name="calls") as session:
        handle = session.launch(cp.Counter(rho=10**9), id="count")
        stream.extend([1, 1, 1, 1], units=["a", "a", "b", "a"])
        assert handle.ask() == 3
    stream = phones()
    with cp.Session(stream, within=BUDGET, ledger=place, name="calls") as session:
        handle = session.launch(cp.Counter(rho=10**9), id="count")
        stream.extend([1, 1], units=["a", "b"])
        assert handle.ask() == 4, "a has had its two; b's second item is three places after its first"
    for other in (cp.Stream(unit="phone", per_unit=2), cp.Stream(unit="phone", per_unit=2, apart=2)):
        with pytest.raises(cp.CounterpointError):
            cp.Session(other, within=BUDGET, ledger=place, name="calls")

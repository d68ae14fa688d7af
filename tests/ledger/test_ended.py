"""Sessions that were closed, have failed, or are opened as something else: what they say, and how to go on."""

import pytest
from tests.ledger.places import Place

import counterpoint as cp


def test_a_closed_session_still_says_what_was_lost(place):
    s = place.session()
    s.launch(cp.Laplace("0.25"))
    inner = s.delegate(cp.PureDP("0.5"))
    inner.launch(cp.Laplace("0.125"))
    shown = repr(s), repr(inner)
    s.close()
    s.close()
    assert s.loss == cp.PureDP("0.75") and inner.loss == cp.PureDP("0.125")
    assert s.remaining.epsilon == cp.PureDP("0.25").epsilon and s.rule == cp.Filter(cp.PureDP(1))
    assert (repr(s), repr(inner)) == shown and "PureDP(0.75)" in s._repr_html_()
    with pytest.raises(cp.errors.NotAllowed, match="has been closed"):
        s.launch(cp.Laplace("0.1"))


def test_what_a_closed_session_would_have_to_read_says_so(lasting):
    s = lasting.session()
    noisy = s.launch(cp.Laplace("0.25"))
    s.close()
    for deed in (lambda: s.history, lambda: s.handles, s.certificate, lambda: noisy.halted):
        with pytest.raises(cp.errors.LedgerError, match="open it again"):
            deed()
    assert repr(noisy).startswith("Handle(Laplace(")


def fail(ledger):
    """From now on every commit fails."""

    def die(point):
        if point == "commit":
            raise cp.errors.LedgerFailed("as if the disk were full")

    ledger._reached = die


def test_a_ledger_that_has_failed_says_so_in_one_type_whatever_is_done_with_it(lasting):
    s = lasting.session()
    noisy = s.launch(cp.Laplace("0.1", asks=9))
    fail(s._engine.ledger)
    for deed in (
        lambda: noisy.ask("apples", id="q"),
        lambda: noisy.ask("apples", id="q"),
        lambda: s.launch(cp.Laplace("0.1")),
        lambda: s.loss,
        lambda: s.history,
        lambda: noisy.halted,
        s._engine.ledger.verify,
    ):
        with pytest.raises(cp.errors.LedgerFailed):
            deed()
    assert repr(s) == "Session(cannot be read: LedgerFailed)" and repr(noisy).startswith("Handle(")
    s.close()
    with pytest.raises(cp.errors.LedgerFailed):
        s.loss  # noqa: B018 - asking is the point


def test_it_is_opened_again_in_the_same_process_and_goes_on(lasting):
    s = lasting.session()
    noisy = s.launch(cp.Laplace("0.1", asks=9))
    fail(s._engine.ledger)
    with pytest.raises(cp.errors.LedgerFailed):
        noisy.ask("apples", id="q")
    with lasting.reopened() as again:  # although the failed one was never closed
        answer = again.at(noisy.path).ask("apples", id="q")
        s.close()
        assert again.at(noisy.path).ask("apples", id="q") == answer and again.loss == cp.PureDP("0.1")
        again._engine.ledger.verify()


def test_so_is_a_stream_with_the_items_that_it_has(lasting):
    visits = cp.Stream(bound=1)
    s = cp.Session(visits, cp.PureDP(1), ledger=lasting.durable)
    counter = s.launch(cp.Counter(epsilon="0.5"))
    visits.extend([1, 1], id="monday")
    fail(s._engine.ledger)
    with pytest.raises(cp.errors.LedgerFailed):
        visits.append(1, id="tuesday")
    with cp.open(lasting.durable, source=visits) as again:
        visits.append(1, id="tuesday")
        assert visits.pin() == 3 and isinstance(again.at(counter.path).ask(), int)


def test_sessions_that_share_a_file_with_one_that_failed_say_so_too_and_are_opened_again(tmp_path):
    place = Place("sqlite", tmp_path)
    one, two = place.session(name="one"), place.session(name="two")
    noisy = two.launch(cp.Laplace("0.1", asks=9))
    fail(one._engine.ledger)
    with pytest.raises(cp.errors.LedgerFailed):
        one.launch(cp.Laplace("0.1"))
    for deed in (lambda: two.loss, lambda: noisy.ask("apples", id="q"), lambda: two.loss):
        with pytest.raises(cp.errors.LedgerFailed):
            deed()
    with place.reopened(name="one") as one, place.reopened(name="two") as two:
        assert isinstance(two.at(noisy.path).ask("apples", id="q"), int) and one.loss == cp.PureDP(0)


def test_a_session_on_record_is_told_from_another_in_words(lasting):
    lasting.session(cp.PureDP(1), name="people").close()
    for other, words in (
        ({"within": cp.PureDP(2)}, r"budget PureDP\(1\), not PureDP\(2\)"),
        ({"rule": cp.Odometer(cp.PureDP)}, r"budget PureDP\(1\), not rule Odometer"),
        ({"within": cp.PureDP(1), "sequential": True}, "sequential=False, not sequential=True"),
    ):
        with pytest.raises(
            cp.errors.RequestConflict, match=f"this ledger holds a session 'people' with {words}; open it as"
        ):
            cp.Session(lasting.source, ledger=lasting.durable, name="people", **other)
    with cp.Session(lasting.source, cp.PureDP(1), ledger=lasting.durable, name="people") as s:
        assert s.loss == cp.PureDP(0)

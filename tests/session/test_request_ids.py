"""A request id means one launch, one partition, one answer: at once from many threads, and after a restart."""

import threading

import pyarrow as pa
import pytest
from tests.session.deeds import done, lines
from tests.session.numbers_source import Numbers
from tests.session.run_threads import run_threads

import counterpoint as cp
from counterpoint.errors import BudgetExceeded, RequestConflict
from counterpoint.ledger.memory import MemoryLedger

DATA = {"apples": 100, "avocados": 7, "beans": 3}


def at_once(count, work):
    """What so many threads get from the same call, made as nearly at once as can be; an error is a result, too."""
    start, results = threading.Barrier(count), []

    def run():
        start.wait()
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    run_threads(count, run)
    return results


@pytest.mark.parametrize(("kind", "trials"), [("memory", 60), ("sqlite", 10)])
def test_threads_that_launch_with_one_id_get_one_path_and_one_charge(tmp_path, kind, trials):
    for trial in range(trials):
        ledger = None if kind == "memory" else tmp_path / f"{trial}.db"
        with cp.Session(Numbers(DATA), cp.PureDP(1), ledger=ledger) as s:
            assert at_once(8, lambda s=s: s.launch(cp.Laplace("0.25"), id="L").path) == [(0,)] * 8
            assert at_once(8, lambda s=s: s.delegate(cp.PureDP("0.25"), id="D")._path) == [(1,)] * 8
            cut = {"k": 1, "within": cp.PureDP("0.25"), "id": "P"}
            assert at_once(8, lambda s=s, cut=cut: s.partition("letter", **cut)._path) == [(2,)] * 8
            assert s.loss == cp.PureDP("0.75") and len(done(s)) == (4 if kind == "memory" else 5)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_session_that_is_opened_many_times_at_once_is_one_session(tmp_path, kind):
    """In SQLite the first of them also makes the key and the record, and the others find both."""
    for trial in range(25):
        ledger = MemoryLedger() if kind == "memory" else tmp_path / f"{trial}.db"
        opened = []

        def work(ledger=ledger, opened=opened):
            opened.append(cp.Session(Numbers(DATA), cp.PureDP(1), ledger=ledger))
            return opened[-1].launch(cp.Laplace("0.25"), id="L").path

        assert at_once(6, work) == [(0,)] * 6
        assert {repr(s.loss) for s in opened} == {"PureDP(0.25)"}
        opened[0]._engine.ledger.verify()
        for s in opened:
            s.close()


def test_a_partition_is_found_again_by_its_request_id_after_a_restart(tmp_path):
    def opened():
        return cp.Session(Numbers(DATA), cp.PureDP(1), ledger=tmp_path / "ledger.db")

    with opened() as s:
        parts = s.partition("letter", within=cp.PureDP(0.4), id="by letter")
        told = parts["a"].launch(cp.Laplace(0.4, asks=2), id="L").ask("apples", id="q")
    with opened() as s:
        again = s.partition("letter", within=cp.PureDP(0.4), id="by letter")
        assert s.loss == cp.PureDP(0.4) and again._path == parts._path, "paid for once"
        assert again["a"].launch(cp.Laplace(0.4, asks=2), id="L").ask("apples", id="q") == told
        with pytest.raises(BudgetExceeded):
            again["a"].launch(cp.Laplace(0.1))
        with pytest.raises(RequestConflict, match=r"^request 'by letter' was made before"):
            s.partition("letter", within=cp.PureDP(0.3), id="by letter")
        assert s.partition("letter", within=cp.PureDP(0.4))._path != parts._path, "without an id, a new one"
        assert s.loss == cp.PureDP(0.8)


def test_an_id_stands_for_all_that_was_asked():
    """Also for the column of a cut and for a mechanism's options, which the answer depends on."""
    with cp.Session(Numbers(DATA), cp.PureDP(10**6)) as s:
        s.partition("letter", within=cp.PureDP(1), id="P")
        svt = s.launch(cp.SparseVector(epsilon=10**5, threshold=50), id="S")
        assert svt.ask("beans", threshold=60, id="q") is False
        for other in (
            lambda: s.partition("length", within=cp.PureDP(1), id="P"),
            lambda: svt.ask("beans", threshold=1, id="q"),
            lambda: svt.ask("beans", id="q"),
            lambda: s.launch(cp.SparseVector(epsilon=10**5, threshold=51), id="S"),
        ):
            with pytest.raises(RequestConflict):
                other()
        assert svt.ask("beans", threshold=60, id="q") is False and s.loss == cp.PureDP(10**5 + 1)


@pytest.mark.parametrize(
    ("field", "key", "others"),
    [
        (cp.number(0, 10, step="0.5"), 2.5, 5),
        (cp.number(0, 100, step=10), 10, 100),
        (cp.date("2000-01-01", "2009-12-31"), "2000-01-03", "2000-01-02"),
        (cp.category([7, 8]), 7, 8),
        (cp.boolean(), True, False),
        (cp.text(), "7", "8"),
    ],
)
def test_a_handle_in_a_part_that_is_found_again_is_about_the_same_part(field, key, others):
    """A part's name holds the stored value; read as a number of units it would name another part, paid for once."""
    stream = cp.Stream(fields={"by": field}, neighbours="add-or-remove")
    stream.extend([{"by": key}] * 3 + [{"by": others}] * 7)
    frame = {"by": [key] * 3 + [others] * 7}
    for source, request in (
        (stream, cp.total()),
        (cp.Table(pa.table(frame), unit=cp.each_row, columns={"by": field}), cp.count()),
    ):
        s = cp.Session(source, cp.PureDP(10**6))
        handle = s.partition("by", within=cp.PureDP(10**5))[key].launch(cp.Laplace(10**5, asks=2))
        assert handle.ask(request) == s.at(handle.path).ask(request) == 3


def test_the_history_tells_what_was_asked_with_which_options_and_never_an_answer():
    with cp.Session(Numbers(DATA), cp.PureDP(10**6)) as s:
        svt = s.launch(cp.SparseVector(epsilon=10**5, threshold=50))
        assert svt.ask("beans", threshold=60) is False
        noisy = s.launch(cp.Laplace(10**5))
        assert noisy.ask("apples") == 100
        asked = [fact.what for fact in s.history if fact.kind == "ask"]
        assert asked == ["'beans', Threshold(60)", "'apples'"]


def test_two_worlds_have_the_same_history():
    def run(data):
        with cp.Session(Numbers(data), cp.PureDP(1)) as s:
            s.launch(cp.SparseVector(epsilon=0.5, threshold=50, hits=3)).ask("apples", threshold=10**6)
            s.launch(cp.Laplace(0.5)).ask("beans")
            return lines(s)

    assert run(DATA) == run({**DATA, "apples": 99, "beans": 4})


def test_parts_of_unlike_losses_are_found_again_with_the_budget_they_were_given(tmp_path):
    def opened():
        s = cp.Session(Numbers(DATA, reach=2), cp.PureDP(2), ledger=tmp_path / "ledger.db")
        return s, s.partition("letter", k=2, within=[cp.PureDP(1), cp.PureDP(0.25)], id="P")

    s, parts = opened()
    assert (
        s.loss == cp.PureDP(1.25)
        and repr(parts) == "Partition(by 'letter', each within one of PureDP(1), PureDP(0.25))"
    )
    parts.part("a", within=cp.PureDP(1)).launch(cp.Laplace(1))
    assert parts["b"].rule.budget == cp.PureDP(0.25)
    with pytest.raises(BudgetExceeded, match=r"PureDP\(0.25\) is the largest left"):
        parts.part("c", within=cp.PureDP(0.5))
    with pytest.raises(cp.errors.NotAllowed, match=r"opened before with PureDP\(0.25\)"):
        parts.part("b", within=cp.PureDP(0.1))
    with pytest.raises(cp.errors.InvalidParameter, match="such as PureDP"):
        parts.part("b", within=0.1)
    s.close()
    s, parts = opened()
    assert parts["a"].rule.budget == cp.PureDP(1) == parts["a"].loss and parts["b"].loss == cp.PureDP(0)
    with pytest.raises(BudgetExceeded):
        parts.part("d", within=cp.PureDP(0.5))
    s._engine.ledger.verify()
    s.close()


def test_a_partition_is_counted_launch_by_launch_in_a_session():
    s = cp.Session(Numbers(DATA, reach=100), cp.ApproxDP(1, 1e-6))
    parts = s.partition("letter", k=100, within=cp.PureDP(0.01))
    assert s.loss.epsilon < 0.6 and round(parts.loss.epsilon_at(1e-6), 3) == 0.392
    assert s.loss_at(distance=3).epsilon == 3, "a group pays for the whole claim"
    assert parts.as_given()[1] == "each within PureDP(0.01), 100 x PureDP(0.01) charged for all of them"

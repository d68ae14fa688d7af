"""A ledger from when the default filter had one Renyi order opens by the same words, and keeps the rule it has."""

import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.composition.rules.filters import Filter
from counterpoint.encoding import decode, encode
from counterpoint.ledger.memory import MemoryLedger

BUDGET = cp.ApproxDP(1, "1e-6")
STORED = (
    b'{"type":"Filter/1","alpha":"233/10","budget":{"type":"ApproxDP/1","delta":"1/1000000","epsilon":"1/1"},'
    b'"by":"best","halt":false,"slack":"1/2000000"}'
)
"""A default filter, as ledgers have it that were written before."""


def people():
    rows = pa.table({"person": [1, 2, 3], "state": ["CA", "NY", "CA"]})
    return cp.Table(rows, "person", rows_per_unit=1, columns={"state": cp.category(["CA", "NY"])}, key=b"k" * 32)


@pytest.fixture
def before(monkeypatch):
    """Within this, a budget means what it meant then."""

    def then():
        monkeypatch.setattr("counterpoint.session.session.Filter", earlier)
        monkeypatch.setattr("counterpoint.session.partition.Filter", earlier)
        monkeypatch.setattr("counterpoint.session.delegating.Filter", earlier)

    def earlier(budget):
        return (*Filter(budget).earlier, Filter(budget))[0]

    yield then
    monkeypatch.undo()


def test_a_stored_filter_reads_back_as_the_rule_of_one_order_and_keeps_its_bytes():
    rule = decode(STORED, Filter)
    assert rule == Filter(BUDGET).earlier[0] != Filter(BUDGET)
    account = rule.start() + cp.PureDP("0.01")
    assert type(account).__name__ == "BestSum" and account.left is not None
    assert encode(rule) == encode(decode(encode(rule), Filter))
    assert decode(encode(account), type(account)) == account


def test_a_filter_with_another_slack_had_an_order_of_its_own():
    now = Filter(BUDGET, slack="1e-7")
    (earlier,) = now.earlier
    assert earlier.slack == now.slack and earlier.alpha == Filter(BUDGET, by="renyi", slack="1e-7").alpha


@pytest.mark.parametrize(
    "rule",
    [Filter(cp.PureDP(1)), Filter(BUDGET, by="renyi"), Filter(BUDGET, alpha=9), Filter(BUDGET, launches=3)],
    ids=repr,
)
def test_other_filters_mean_what_they_meant(rule):
    assert rule.earlier == ()


def test_the_same_words_find_a_session_a_delegation_and_a_part_of_then(before, monkeypatch):
    ledger = MemoryLedger()
    before()
    then = cp.Session(people(), BUDGET, ledger=ledger)
    inner = then.delegate(cp.ApproxDP("0.25", "1e-7"), id="D")
    part = then.partition("state", within=cp.ApproxDP("0.25", "1e-7"), id="P")["CA"]
    part.launch(cp.Laplace("0.125"), id="L")
    losses = then.loss, inner.loss, part.loss
    monkeypatch.undo()

    now = cp.Session(people(), BUDGET, ledger=ledger)
    assert now.rule == Filter(BUDGET).earlier[0]
    inside = now.delegate(cp.ApproxDP("0.25", "1e-7"), id="D")
    again = now.partition("state", within=cp.ApproxDP("0.25", "1e-7"), id="P")["CA"]
    again.launch(cp.Laplace("0.125"), id="L")
    assert (now.loss, inside.loss, again.loss) == losses, "found again, and nothing more is charged"
    assert inside.rule.alpha is not None and again.rule.alpha is not None


def test_other_words_are_still_refused(before, monkeypatch):
    ledger = MemoryLedger()
    before()
    cp.Session(people(), BUDGET, ledger=ledger).delegate(cp.ApproxDP("0.25", "1e-7"), id="D")
    monkeypatch.undo()
    with pytest.raises(cp.RequestConflict, match="with budget"):
        cp.Session(people(), cp.ApproxDP(2, "1e-6"), ledger=ledger)
    now = cp.Session(people(), BUDGET, ledger=ledger)
    with pytest.raises(cp.RequestConflict):
        now.delegate(cp.ApproxDP("0.125", "1e-7"), id="D")


def test_the_same_words_find_a_time_uniform_odometer_of_then():
    ledger = MemoryLedger()
    words = cp.Odometer.mixture(delta="1e-6", tuned_for=1)
    then = cp.Session(people(), rule=words.earlier[0], ledger=ledger)
    then.launch(cp.Laplace("0.125"), id="L")
    now = cp.Session(people(), rule=words, ledger=ledger)
    now.launch(cp.Laplace("0.125"), id="L")
    assert now.rule == words.earlier[0] and now.loss == then.loss

"""Sessions with budgets in Gaussian DP and f-DP: delegated, partitioned, and found again after a restart."""

import pytest
from tests.session.numbers_source import Numbers

import counterpoint as cp

DATA = {"apples": 30, "apricots": 4, "beans": 7}
TABLE = cp.GaussianDP(1).as_tradeoff()


def session(budget, reach=1, **given):
    return cp.Session(Numbers(DATA, reach=reach), within=budget, **given)


def test_gaussian_parts_of_a_gaussian_budget_cost_the_root_of_k_squares():
    s = session(cp.GaussianDP(1), reach=4)
    parts = s.partition("letter", k=4, within=cp.GaussianDP("0.3"))
    assert s.loss == cp.GaussianDP("0.6")
    handles = [parts[letter].launch(cp.Gaussian(mu="0.3", asks=2)) for letter in "abcdefgh"]
    top = s.launch(cp.Gaussian(mu="0.8", asks=2))
    assert all(isinstance(handle.ask("apples"), int) for handle in (*handles, top, *handles))
    assert s.loss == cp.GaussianDP(1), "any number of parts"
    with pytest.raises(cp.BudgetExceeded):
        s.partition("letter", k=4, within=cp.GaussianDP("0.01"))
    with pytest.raises(cp.BudgetExceeded):
        parts["a"].launch(cp.Laplace("0.01"))


@pytest.mark.parametrize("budget", [cp.GaussianDP(1), TABLE], ids=["Gaussian", "table"])
def test_parts_hold_pure_mechanisms_gaussians_and_further_parts(budget):
    s = session(budget)
    before = s.remaining.epsilon
    pure = s.partition("letter", within=cp.PureDP("0.2"))
    pure["a"].launch(cp.SparseVector("0.1", 10)).ask("apples")
    with pytest.raises(cp.errors.NotCovered):
        pure["a"].launch(cp.Gaussian(mu="0.01"))
    gaussian = s.partition("letter", within=cp.GaussianDP("0.5"))
    inside = gaussian["a"].partition("second", within=cp.GaussianDP("0.3"))
    inside["ap"].launch(cp.Gaussian(mu="0.3"))
    inner = gaussian["a"].delegate(cp.GaussianDP("0.3"))
    inner.launch(cp.Laplace("0.1", asks=3)).ask("apples")
    assert 0 < s.remaining.epsilon < before and float(gaussian["a"].loss.mu) == pytest.approx(0.18**0.5)
    with pytest.raises(cp.BudgetExceeded):
        gaussian["a"].delegate(cp.GaussianDP("0.4"))


def test_curves_are_partitioned_and_delegated_under_a_curve():
    coin = cp.TradeOff.between(["0.6", "0.4"], ["0.4", "0.6"])
    s = session(TABLE, reach=2)
    parts = s.partition("letter", k=2, within=coin)
    parts["a"].launch(cp.Laplace("0.4", asks=2)).ask("apples")
    with pytest.raises(cp.BudgetExceeded):
        parts["a"].launch(cp.Laplace("0.4"))
    inner = s.delegate(coin)
    inner.launch(cp.Laplace("0.4"))
    exposing = s.delegate(cp.GaussianDP("0.3"))
    exposing.launch(cp.Gaussian(mu="0.3"))
    assert s.remaining.epsilon < session(TABLE).remaining.epsilon


@pytest.mark.parametrize("budget", [cp.GaussianDP(1), TABLE], ids=["Gaussian", "table"])
def test_on_a_stream_pure_parts_are_covered_and_others_refused(budget):
    visits = cp.Stream(fields={"page": cp.text()}, neighbours="add-or-remove")
    s = cp.Session(visits, within=budget)
    parts = s.partition("page", within=cp.PureDP("0.3"))
    parts["home"].launch(cp.Counter(epsilon="0.3"))
    left = s.remaining
    for within in (cp.GaussianDP("0.1"), cp.TradeOff.of_approx("0.1", 0), cp.zCDP("0.01")):
        with pytest.raises(cp.errors.NotCovered, match=r"Thm 13\.5"):
            s.partition("page", within=within)
    assert s.remaining == left


def test_exposures_of_parts_fit_a_curve_and_no_mu():
    within = cp.ApproxDP("0.1", "1e-6")
    with pytest.raises(cp.errors.NotCovered, match="exposed, which no mu bounds"):
        session(cp.GaussianDP(1)).partition("letter", within=within)
    curve = cp.TradeOff.of_approx(1, "1e-3")
    parts = session(curve).partition("letter", within=within)
    parts["a"].launch(cp.Laplace("0.1", asks=2)).ask("apples")
    visits = cp.Stream(fields={"page": cp.text()}, neighbours="add-or-remove")
    s = cp.Session(visits, within=curve)
    s.partition("page", within=within, delta_total="1e-4")["home"].launch(cp.Counter(epsilon="0.1"))
    with pytest.raises(cp.BudgetExceeded):
        s.partition("page", within=within, delta_total="1e-3")


@pytest.mark.parametrize("budget", [cp.GaussianDP(1), cp.TradeOff.of_approx(1, "1e-3")], ids=["Gaussian", "table"])
def test_a_durable_session_is_found_again_with_its_parts_and_their_losses(budget, tmp_path):
    place = str(tmp_path / "ledger.db")
    with session(budget, ledger=place) as s:
        parts = s.partition("letter", within=cp.PureDP("0.3"), id="letters")
        noisy = parts["a"].launch(cp.Laplace("0.2", asks=2, clamp=(0, 50)))
        answer = noisy.ask("apples", id="first")
        watching = s.launch(cp.SparseVector("0.1", 10**9, asks=3))
        assert watching.ask("beans") is False
        left, path = s.remaining, watching.path
    with cp.open(place, source=Numbers(DATA)) as s:
        again = s.partition("letter", within=cp.PureDP("0.3"), id="letters")
        assert s.remaining == left and again["a"].loss == cp.PureDP("0.2")
        assert again["a"].handles[0].ask("apples", id="first") == answer and 0 <= answer <= 50
        watching = s.at(path)
        for _ in range(2):
            assert not watching.halted
            watching.ask("beans")
        assert watching.halted

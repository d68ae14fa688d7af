"""The lines of the face, as they stand: five minutes, data that changes, parts and delegation, on made-up people."""

import shutil

import pytest

import counterpoint as cp

PEOPLE = cp.datasets.people()


@pytest.fixture
def session(tmp_path, monkeypatch):
    shutil.copy(PEOPLE, tmp_path / "adult.parquet")
    monkeypatch.chdir(tmp_path)
    people = cp.Table("adult.parquet", unit="person_id", rows_per_unit=1)
    return cp.Session(people, within=cp.ApproxDP(1.0, 1e-6))


def test_five_minutes(session):
    svt = session.launch(cp.SparseVector(epsilon=0.3, threshold=1000, hits=3))
    noisy = session.launch(cp.Laplace(epsilon=0.05, asks=4))
    said = {}
    for state in ["CA", "NY", "WY"]:
        if svt.ask(cp.count(where=f"state = '{state}'")):
            said[state] = noisy.ask(cp.count(where=f"state = '{state}'"))
    assert set(said) == {"CA", "NY"}, "5,391 and 2,534 people against 141; the noise has scale 53 at most"
    assert abs(said["CA"] - 5391) < 5000 and isinstance(said["CA"], int)
    assert session.loss == cp.ApproxDP(0.35, 1e-6)
    assert session.remaining.epsilon >= cp.PureDP(0.65).epsilon
    assert "Henzinger et al. 2024, Thm 12.4" in str(session.certificate())


def test_data_that_changes():
    visits = cp.Stream(bound=1)
    live = cp.Session(visits, within=cp.PureDP(1.0))
    counter = live.launch(cp.Counter(epsilon=0.5))
    visits.append(1)
    visits.append(0)
    assert isinstance(counter.ask(), int) and live.loss == cp.PureDP(0.5)


def test_a_counter_reads_what_has_arrived_since_its_launch_when_it_is_asked():
    visits = cp.Stream(bound=1)
    live = cp.Session(visits, within=cp.PureDP(10**6))
    visits.extend([1] * 50)
    counter = live.launch(cp.Counter(epsilon=10**5, horizon=1000))
    assert counter.ask() == 0, "from its launch on"
    visits.extend([1, 0, 1])
    assert counter.ask() == 2
    others = [live.launch(cp.Counter(epsilon=1)) for _ in range(20)]
    visits.extend([1] * 100)
    assert counter.ask() == 102 and len(others) == 20


def test_parts_delegation_nesting(session):
    parts = session.partition("state", k=1, within=cp.ApproxDP(0.2, 1e-7))
    west = parts["CA"].launch(cp.Laplace(0.2, asks=2))
    top = session.launch(cp.Laplace(0.1, asks=2))
    east = parts["NY"].launch(cp.Laplace(0.1, asks=2))
    for handle, people in ((west, 5391), (top, 20_000), (east, 2534)) * 2:
        assert abs(handle.ask(cp.count()) - people) < 2000
    colleague = session.delegate(cp.ApproxDP(0.1, 1e-8))
    assert isinstance(colleague.launch(cp.Laplace(0.1)).ask(cp.count()), int)
    assert session.loss == cp.ApproxDP(0.4, 1e-6)
    with pytest.raises(cp.BudgetExceeded):
        parts["NY"].launch(cp.Laplace(0.2))


FACE = {
    "Five minutes": """
import counterpoint as cp

people = cp.Table("adult.parquet", unit="person_id", rows_per_unit=1)   # path, Arrow, Polars, pandas or Ibis table
session = cp.Session(people, within=cp.ApproxDP(1.0, 1e-6))   # a privacy filter

svt = session.launch(cp.SparseVector(epsilon=0.3, threshold=1000, hits=3))
noisy = session.launch(cp.Laplace(epsilon=0.05, asks=4))      # four adaptive asks, paid once

for state in ["CA", "NY", "WY"]:                              # interleave freely
    if svt.ask(cp.count(where=f"state = '{state}'")):
        print(state, noisy.ask(cp.count(where=f"state = '{state}'")))

session.loss            # what has been lost: the privacy_loss query; changes nothing
session.remaining       # what a further launch may still cost
print(session.certificate())
""",
    "Data that changes": """
visits = cp.Stream(bound=1)                                    # event level; unit=..., per_unit=... for user level
live = cp.Session(visits, within=cp.PureDP(1.0))
counter = live.launch(cp.Counter(epsilon=0.5))
visits.append(1); visits.append(0)
counter.ask()                                                  # the noisy running count, now

clicks = cp.Stream(bound=1, dimensions=4)
busiest = cp.Session(clicks, within=cp.PureDP(1.0)).launch(cp.MonotoneHistogram(epsilon=1.0, query=cp.continual.max_of))
clicks.append([1, 0, 0, 1]); busiest.ask()
""",
    "Parts, delegation, nesting": """
parts = session.partition("state", k=1, within=cp.ApproxDP(0.2, 1e-7))   # charges k times `within`, once
parts["CA"].launch(...); session.launch(...); parts["NY"].launch(...)   # any order, any interleaving
colleague = session.delegate(cp.ApproxDP(0.1, 1e-8))           # a session inside the session; charged at once
""",
}


def test_the_lines_of_the_face_run_as_they_stand(tmp_path, monkeypatch, capsys):
    """Word for word, one after the other; only where they say `launch(...)` is a mechanism put in."""
    shutil.copy(PEOPLE, tmp_path / "adult.parquet")
    monkeypatch.chdir(tmp_path)
    names = {}
    for lines in FACE.values():
        exec(lines.replace("launch(...)", "launch(cp.Laplace(0.1))"), names)
    said = capsys.readouterr().out
    assert said.startswith("CA ") and "\nNY " in said and "Henzinger et al. 2024, Thm 12.4" in said
    assert names["live"].loss == cp.PureDP(0.5) and names["busiest"].ask() >= 0
    assert names["session"].loss == cp.ApproxDP(0.75, 1e-6) and names["colleague"].loss.epsilon == 0


def test_sums_histograms_and_ranks_in_the_users_units():
    people = cp.Table(
        str(PEOPLE),
        unit="person_id",
        rows_per_unit=1,
        columns={
            "age": cp.number(0, 100),
            "income": cp.number(0, 200_000, 1000),
            "state": cp.category(["CA", "NY", "WY"]),
        },
    )
    session = cp.Session(people, within=cp.PureDP(10**7))
    exact = session.launch(cp.Laplace(10**6, asks=5))
    by_state = exact.ask(cp.histogram("state"))
    assert by_state == (5391, 2534, 141)
    ages = exact.ask(cp.sum("age", where="state = 'WY'"))
    assert 5000 < ages < 6500
    ranks = exact.ask(cp.ranks("age", [18, 42, 100]))
    assert ranks == tuple(sorted(ranks)) and ranks[-1] == 20_000


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda s: s.launch(cp.Laplace(0.1)).ask("SELECT count(*) FROM people"), "answers"),
        (lambda s: s.launch(cp.Laplace(0.1)).ask(cp.count(where="state = (SELECT 1)")), ""),
        (lambda s: s.launch(cp.Laplace(0.1)).ask(cp.count(where="country = 'US'")), "country"),
        (lambda s: s.launch(cp.Laplace(0.1)).ask(cp.sum("income")), "income"),
        (lambda s: s.launch(cp.Laplace(0.1)).ask(), ""),
    ],
)
def test_what_a_newcomer_tries_first_is_explained_and_costs_only_the_launch(session, mistake, words):
    with pytest.raises(cp.errors.InvalidRequest) as caught:
        mistake(session)
    assert words in str(caught.value) and len(str(caught.value)) > 20
    assert session.loss == cp.ApproxDP(0.1, 1e-6)

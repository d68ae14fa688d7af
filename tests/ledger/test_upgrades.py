"""A ledger of an earlier version is opened: it verifies, ids keep their answers, what was open is finished."""

import json
import pathlib

import pytest
from tests.ledger import upgrading
from tests.ledger.upgrading import FIXTURES, SOURCES

import counterpoint as cp
from counterpoint.errors import LedgerError
from counterpoint.ledger.opening import sessions_at
from counterpoint.ledger.operating.tending import history, listed, migrate

FOLDERS = sorted(FIXTURES.glob("schema-*"))


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture(params=upgrading.KINDS)
def kind(request):
    return request.param


@pytest.fixture
def copy(folder, kind, tmp_path):
    return upgrading.put(folder, kind, tmp_path)


@pytest.fixture
def expected(folder, kind):
    return json.loads((folder / "expected.json").read_text())[kind]


def test_there_is_a_ledger_of_an_earlier_version():
    assert (FIXTURES / "schema-5").is_dir()


def test_it_verifies_before_any_data_is_bound_to_it(copy):
    if copy.in_postgres:
        list(migrate(copy))
    lines = list(sessions_at(copy))
    assert [line.split(":")[0] for line in lines] == sorted(SOURCES)
    assert all("1 requests to be finished" in line for line in lines)


def content(place):
    """Everything that the database says of itself."""
    if not place.in_postgres:
        return pathlib.Path(place.place).read_bytes()
    return [line for line in upgrading.dumped(place.place).splitlines() if not line.startswith("\\")]  # random marks


def test_a_look_at_it_changes_nothing(copy):
    """SQLite's is looked at in a copy; PostgreSQL's tables would have to be changed, so that is left to an operator."""
    before = content(copy)
    for look in (sessions_at(copy), listed(copy), history(copy, "people")):
        if copy.in_postgres:
            with pytest.raises(LedgerError, match=r"this ledger has schema 5, .* counterpoint ledger migrate$"):
                next(look)
        else:
            assert len(list(look)) >= len(SOURCES)
    assert content(copy) == before


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_ids_get_the_same_answers_and_nothing_more_is_charged(copy, folder, expected, name):
    """Also the request that a crash left open: it is finished from its seed, on the data that it had pinned."""
    for _ in range(2):  # as it is found, and once it is up to date
        assert upgrading.opened(copy, folder, name) == expected[name]
    lines = dict(line.split(":", 1) for line in sessions_at(copy))
    assert "0 requests to be finished" in lines[name]


def test_the_budget_is_what_it_was(copy, folder):
    for name, source in SOURCES.items():
        with cp.open(copy, name, source=source(folder)) as s:
            assert s.rule.budget == upgrading.budget(name)
        with cp.Session(source(folder), upgrading.budget(name), ledger=copy, name=name) as s:
            assert s.rule.budget == upgrading.budget(name)


@pytest.mark.parametrize("name", SOURCES)
def test_it_goes_on(copy, folder, expected, name):
    """New launches, asks and items, in the same session; and the record of both versions holds together."""
    source = SOURCES[name](folder)
    with cp.open(copy, name, source=source) as s:
        request = cp.total() if name == "visits" else cp.count()
        if name == "visits":
            source.append({"user": "new", "page": "home"}, id="after the upgrade")
            source.extend([{"user": f"u{n % 4}", "page": ("home", "shop")[n % 2]} for n in range(6)], id="first file")
            assert source.pin() == 9, "what was sent before is not added again"
        noisy = s.launch(cp.Laplace("0.125", asks=2), id="after the upgrade")
        answer = noisy.ask(request, id="after the upgrade, asked")
    with cp.open(copy, name, source=SOURCES[name](folder)) as s:
        assert s.at(noisy.path).ask(request, id="after the upgrade, asked") == answer
        s._engine.ledger.verify()

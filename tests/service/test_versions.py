"""Versions of a served data set: who refreshes and who sees what, over HTTP, by the command, and across restarts."""

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest
from msgspec.structs import replace
from tests.ledger.places import Place
from tests.service.process import SOURCES, Served
from tests.service.registry import served, table

import counterpoint as cp
from counterpoint.client.connect import connect
from counterpoint.errors import DataChanged, DataReplaced, InvalidParameter, NotAllowed
from counterpoint.service.config import open_registry, read_file
from counterpoint.service.data_set import Binding
from counterpoint.service.registry import Registry

SURE = 1000
"""At this epsilon the noise of a count is 0 but for one in e^1000."""
COUNT = {"request": {"request": "count"}, "epsilon": SURE}
BUDGET = cp.Filter(cp.PureDP(10**6))


class Files:
    """What a custodian changes: which rows there are."""

    def __init__(self):
        self.ages, self.rule, self.bound = [40] * 10, BUDGET, []

    def binding(self):
        rows = list(self.ages)

        def bind():
            self.bound.append(table(rows))
            return self.bound[-1]

        return Binding(bind, self.rule, "people.csv")


@pytest.fixture
def files():
    return Files()


@pytest.fixture
def call(tmp_path, files):
    with served(tmp_path) as call:
        call.registry.add("flights", files.binding(), files.binding)
        yield call


def granted(call):
    return call.granted(epsilon=50 * SURE, data_set="flights")


def asked(call, session, **more):
    answer = call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT, **more)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["answer"]["exact"]) if "exact" in answer.json()["answer"] else answer.json()["answer"]


def test_a_custodian_refreshes_and_analysts_go_on_in_their_grants(call, files):
    session = granted(call)
    first = call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT, id="q")
    files.ages = [40] * 25
    made = call("carol", "POST", "/v1/data-sets/flights/versions", {"note": "April"}, id="r")
    assert (made.status_code, made.json()["version"], made.json()["note"]) == (201, 2, "people.csv: April")
    assert call("carol", "POST", "/v1/data-sets/flights/versions", {"note": "April"}, id="r").json() == made.json()
    again = call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT, id="q")
    second = call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT, id="another")
    assert again.json() == first.json()
    assert second.json() != first.json()
    assert call("ann", "GET", f"/v1/sessions/{session}").json()["data_version"] == 2


def test_a_served_stream_gains_a_field_and_a_producer_sends_it(call):
    fields = {"page": cp.text()}

    def binding():
        declared = dict(fields)
        return Binding(lambda: cp.Stream(fields=declared), BUDGET)

    call.registry.add("pages", binding(), binding)
    items = "/v1/data-sets/pages/items"
    assert call("paul", "POST", items, {"items": [{"page": "home"}]}, id="a").status_code < 300
    assert call("paul", "POST", items, {"items": [{"page": "home", "vip": True}]}, id="b").status_code == 422
    fields["vip"] = cp.boolean()
    assert call("carol", "POST", "/v1/data-sets/pages/versions", {}, id="r").json()["version"] == 2
    assert call("paul", "POST", items, {"items": [{"page": "home", "vip": True}]}, id="b").status_code < 300
    assert call("paul", "POST", items, {"items": [{"page": "home"}]}, id="a").status_code < 300
    whole = call.registry.data_set("pages").session()
    assert [int(whole.ask(cp.count(where=one), epsilon=SURE)) for one in (None, "vip")] == [2, 1]


def test_analysts_see_numbers_and_times_and_nothing_of_a_file(call, files):
    session = granted(call)
    call("carol", "POST", "/v1/data-sets/flights/versions", {"note": "the secret file"})
    seen = call("ann", "GET", "/v1/data-sets/flights/versions")
    assert [sorted(one) for one in seen.json()] == [["at", "version"]] * 2
    places = ("", "/history", "/certificate", "/timeline")
    for url in (*(f"/v1/sessions/{session}{place}" for place in places), "/v1/data-sets/flights"):
        assert "secret" not in call("ann", "GET", url).text
    assert "the secret file" in call("olga", "GET", "/v1/data-sets/flights/versions").text
    assert call("bob", "GET", "/v1/data-sets/flights/versions").status_code == 404
    for who in ("ann", "olga", "paul"):
        assert call(who, "POST", "/v1/data-sets/flights/versions", {}).status_code == 403


@pytest.mark.parametrize("keep", [True, False])
def test_handles_of_an_earlier_version_answer_while_its_rows_are_kept(call, files, keep):
    session = granted(call)
    handle = call.launched(session, mechanism="Laplace", epsilon=10 * SURE, asks=10)
    files.ages = [40] * 25
    call("carol", "POST", "/v1/data-sets/flights/versions", {"keep": keep})
    answer = call("ann", "POST", f"/v1/handles/{handle}/asks", {"request": {"request": "count"}})
    assert answer.status_code == (201 if keep else 410), answer.text
    assert keep == (not answer.json().get("type", "").endswith("DataReplaced"))
    first, second = files.bound
    assert first._bound.engine.closed is not keep, "rows that are not kept are deleted"
    assert not second._bound.engine.closed


def test_a_refresh_leaves_the_budget_as_it_is(call, files):
    files.rule = cp.Filter(cp.PureDP(10**7))
    said = call("carol", "POST", "/v1/data-sets/flights/versions", {})
    assert (said.status_code, "leaves the budget" in said.text) == (422, True)
    assert len(call("carol", "GET", "/v1/data-sets/flights/versions").json()) == 1


def test_rows_that_were_replaced_in_place_are_no_dead_end(call, files):
    """The ledger is opened anew after a failure, and finds other rows: a refresh makes them the next version."""
    session, data_set = granted(call), call.registry.data_set("flights")
    data_set.session()._engine.ledger.close()
    files.ages = [40] * 25
    data_set._binding = files.binding()
    refused = call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT)
    assert refused.json()["type"].endswith("DataChanged")
    made = call("carol", "POST", "/v1/data-sets/flights/versions", {"note": "April"})
    assert (made.json()["note"], made.json()["who"]) == ("people.csv: April", "carol")
    assert call("ann", "POST", f"/v1/sessions/{session}/questions", COUNT).status_code == 201


def test_a_worker_that_is_behind_binds_the_current_version_and_answers(tmp_path):
    """Two processes over one ledger: what one refreshes, the other finds out at its next launch."""
    place, files = Place("postgres", tmp_path), Files()
    with closing(Registry(place.durable)) as one, closing(Registry(place.durable)) as other:
        for registry in (one, other):
            registry.add("flights", files.binding(), files.binding)
        behind = other.data_set("flights").session()
        files.ages = [40] * 25
        with pytest.raises(InvalidParameter, match="leave out keep"):
            one.data_set("flights").refresh("carol", keep=True)
        assert one.data_set("flights").refresh("carol").number == 2
        with pytest.raises(DataReplaced):
            behind.ask(cp.count(), epsilon=SURE)
        now = other.data_set("flights").session()
        assert (int(now.ask(cp.count(), epsilon=SURE)), now.data_version, now.loss) == (25, 2, cp.PureDP(SURE))


# ---------------------------------------------------------------------------------------------------- a real process

CONFIG = """
ledger = "ledger.db"
[tables.people]
source = "people.csv"
unit = "person"
rows_per_unit = 1
budget = { measure = "PureDP", epsilon = 1000000 }
columns.age = { type = "number", low = 0, high = 100 }
"""


def write(folder, rows, config=CONFIG):
    (folder / "people.csv").write_text("person,age,height\n" + "".join(f"{n},40,170\n" for n in range(rows)))
    (folder / "counterpoint.toml").write_text(config)


def command(*words, **environment):
    run = [sys.executable, "-m", "counterpoint", *words]
    return subprocess.run(
        run, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": SOURCES, **environment}
    )


def test_the_second_month_of_a_served_table(tmp_path):
    """A column is declared, a month's file arrives, the service is restarted: one budget, no dead end."""
    write(tmp_path, 10)
    with Served(tmp_path, "--config", tmp_path / "counterpoint.toml") as service:
        key = service.key
        with connect(service.url, key=key) as custodian:
            analyst = custodian.people.add("ann", "analyst")
            custodian.session("people").grant("ann", cp.PureDP(10 * SURE))
        with connect(service.url, key=analyst) as ann, connect(service.url, key=key) as custodian:
            hers = ann.session("people")
            assert int(hers.ask(cp.count(), epsilon=SURE)) == 10
            with pytest.raises(cp.errors.InvalidRequest):
                hers.ask(cp.mean("height"), epsilon=SURE)
            old = hers.launch(cp.Laplace(epsilon=SURE, asks=2))

            write(tmp_path, 20, CONFIG + 'columns.height = { type = "number", low = 100, high = 220 }\n')
            done = command(
                *("data", "refresh", "people", "--url", service.url, "--note", "heights"), COUNTERPOINT_API_KEY=key
            )
            assert done.stdout.startswith("people serves version 2"), done.stderr
            assert int(hers.ask(cp.count(), epsilon=SURE)) == 20
            assert round(float(hers.ask(cp.mean("height"), epsilon=SURE))) == 170
            with pytest.raises(DataReplaced):
                old.ask(cp.count())
            assert (old.data_version, hers.data_version, [one.note for one in hers.versions]) == (1, 2, ["", ""])
            assert [one.note for one in custodian.versions("people")] == ["", "people.csv: heights"]
            with pytest.raises(NotAllowed):
                ann.refresh("people")
            lost = hers.loss
            listed = command("data", "versions", "people", "--url", service.url, COUNTERPOINT_API_KEY=key)
            assert "custodian, people.csv: heights" in listed.stdout

    (tmp_path / "people.csv").write_text((tmp_path / "people.csv").read_text() + "99,41,171\n")
    words = ("serve", "--port", "0", "--config", str(tmp_path / "counterpoint.toml"))
    refused = command(*words)
    assert refused.returncode == 1
    assert "--refresh" in refused.stderr
    with Served(tmp_path, "--config", tmp_path / "counterpoint.toml", "--refresh", "people") as service:
        with connect(service.url, key=analyst) as ann:
            hers = ann.session("people")
            assert (hers.loss, hers.data_version, int(hers.ask(cp.count(), epsilon=SURE))) == (lost, 3, 21)
        with connect(service.url, key=key) as custodian:
            record = custodian.session("people").record()
    checked = subprocess.run(
        [sys.executable, "-m", "counterpoint.checker", "/dev/stdin"],
        input="\n".join(record),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert sum('\\"version\\"' in line or json.loads(line).get("kind") == "version" for line in record) == 2
    assert command("ledger", "verify", str(tmp_path / "ledger.db")).returncode == 0


def test_the_configuration_names_the_rows_of_earlier_versions_and_the_record_who_made_the_next(tmp_path):
    write(tmp_path, 10)
    with closing(open_registry(read_file(tmp_path / "counterpoint.toml"))) as registry:
        old = registry.data_set("people").session().launch(cp.Laplace(epsilon=SURE, asks=3)).path
    (tmp_path / "people.csv").rename(tmp_path / "march.csv")
    height = 'columns.height = { type = "number", low = 100, high = 220 }\n'
    earlier = (
        '[[tables.people.earlier]]\nsource = "march.csv"\ncolumns.age = { type = "number", low = 0, high = 100 }\n'
    )
    write(tmp_path, 20, f"{CONFIG}keep = true\n{height}{earlier}")
    settings = read_file(tmp_path / "counterpoint.toml")
    for refresh, number in ((["people"], 2), ([], 2)):
        with closing(open_registry(settings, refresh)) as registry:
            data_set = registry.data_set("people")
            session = data_set.session()
            assert [one.who for one in session.versions] == ["", "operator"]
            assert (session.data_version, int(session.at(old).ask(cp.count()))) == (number, 10)
            if not refresh:
                kept = session.launch(cp.Laplace(epsilon=SURE, asks=3))
                data_set.refresh("carol")
                assert int(kept.ask(cp.count())) == 20, "keep = true stands for --keep at each refresh"
    (tmp_path / "march.csv").write_text("person,age,height\n1,40,170\n")
    with pytest.raises(DataChanged, match="none of those on record"):
        open_registry(settings)
    with pytest.raises(InvalidParameter, match="leave out keep"):
        replace(settings, ledger="postgresql://nowhere").binding("people", settings.tables["people"])


def test_a_second_budget_in_the_configuration_is_loud_and_on_record(tmp_path):
    again = CONFIG.replace("tables.people", "tables.again").partition("[")[2]
    write(tmp_path, 10, CONFIG + "[" + again)
    words = ("serve", "--port", "0", "--config", str(tmp_path / "counterpoint.toml"))
    refused = command(*words)
    assert (refused.returncode, "second_budget" in refused.stderr) == (1, True)
    write(tmp_path, 10, CONFIG + "[" + again + "second_budget = true\n")
    with Served(tmp_path, "--config", tmp_path / "counterpoint.toml") as service:
        assert any("again has a second budget" in line for line in service.lines)
        assert "losses add up" in service.log
        with connect(service.url, key=service.key) as custodian:
            assert "the custodian insisted" in "\n".join(custodian.session("again").record())

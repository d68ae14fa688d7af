"""`counterpoint serve`: one command to the first answer, a strict configuration, TLS, and a stop that loses nothing."""

import json
import ssl
import threading

import httpx
import msgspec
import pyarrow
import pyarrow.parquet
import pytest
from tests.service.certificates import certificate
from tests.service.process import Served
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint import checker
from counterpoint.cli import app
from counterpoint.errors import InvalidParameter
from counterpoint.service import config
from counterpoint.service.config import open_registry
from counterpoint.service.server import Listening, first_key, limits_of, serve

MEAN = {"request": {"request": "mean", "column": "age"}, "epsilon": 0.1}
DECLARED = """
unit = "person"
rows_per_unit = 1
budget = { measure = "PureDP", epsilon = 1 }
columns.age = { type = "number", low = 0, high = 100 }
"""


def write_people(folder):
    rows = {"person": [str(number) for number in range(100)], "age": [40] * 100}
    pyarrow.parquet.write_table(pyarrow.table(rows), folder / "people.parquet")


def test_one_command_serves_made_up_people_and_a_second_start_goes_on(tmp_path):
    with Served(tmp_path, "--demo") as first, first.client() as client:
        question = {"Idempotency-Key": "first question"}
        answer = client.post("/v1/sessions/people/questions", json=MEAN, headers=question)
        assert answer.status_code == 201 and answer.json()["cost"]["text"] == "PureDP(0.1)"
        record = client.get("/v1/data-sets/people/record").text.splitlines()
        signer = next(line.rpartition(" ")[2] for line in first.lines if "signed with the public key" in line)
        assert checker.check(iter(record), [answer.json()["receipt"]], signer).endswith("1 receipt holds")
        assert first.stop() == -15
        (warning,) = first.log.splitlines()
        assert "the witness is in the folder of the ledger" in json.loads(warning)["message"], "and nothing else"
    with Served(tmp_path, "--demo") as again, again.client(first.key) as client:
        assert again.key is None, "a key is made once"
        repeated = client.post("/v1/sessions/people/questions", json=MEAN, headers=question)
        assert repeated.json() == answer.json()
        assert client.get("/v1/sessions/people").json()["loss"]["epsilon"] == 0.1


def test_a_stop_finishes_what_was_begun_and_closes_the_ledger(tmp_path):
    with Served(tmp_path, "--demo") as service:
        codes = []

        def ask(number):
            with service.client() as client:
                headers = {"Idempotency-Key": f"question {number}"}
                try:
                    answer = client.post(
                        "/v1/sessions/people/questions", json={**MEAN, "epsilon": 0.01}, headers=headers
                    )
                    codes.append(answer.status_code)
                except httpx.TransportError:  # it came after the stop
                    codes.append(None)

        with service.client() as client:
            assert client.get("/ready").status_code == 200
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        service.stop()
        for thread in threads:
            thread.join()
        assert set(codes) <= {201, None}
    ledger = CliRunner().invoke(app, ["ledger", "verify", str(tmp_path / "ledger.db")])
    assert ledger.exit_code == 0 and "0 requests to be finished" in ledger.output


def warnings_of(service):
    """The lines of the log about the ledger."""
    return [
        line["message"] for line in map(json.loads, service.log.splitlines()) if line["logger"] == "counterpoint.ledger"
    ]


def test_a_file_is_served_by_the_declaration_beside_it(tmp_path):
    """And the log says once that its witness is beside its ledger."""
    write_people(tmp_path)
    said = f"people={tmp_path / 'people.parquet'}"
    with pytest.raises(InvalidParameter, match="rows_per_unit = 1"):
        config.declared_beside(said)
    (tmp_path / "people.toml").write_text(DECLARED)
    with Served(tmp_path, "--data", said) as service, service.client() as client:
        assert client.get("/v1/data-sets/people").json()["description"]
        assert client.post("/v1/sessions/people/questions", json=MEAN).json()["error"] > 0
        (said,) = warnings_of(service)
        assert "the witness is in the folder of the ledger" in said


def test_a_configuration_has_tables_and_streams_relative_to_its_file(tmp_path):
    write_people(tmp_path)
    text = f"""
ledger = "books/ledger.db"
witness = "witness"
[tables.people]
source = "people.parquet"
{DECLARED}
[streams.visits]
budget = {{ measure = "zCDP", rho = 0.5 }}
fields.page = {{ type = "category", keys = ["a", "b"] }}
fields.day = {{ type = "date", low = "2020-01-01", high = "2030-12-31" }}
fields.note = {{ type = "text" }}
fields.new = {{ type = "boolean" }}
"""
    (tmp_path / "counterpoint.toml").write_text(text)
    (tmp_path / "books").mkdir()
    settings = config.read_file(tmp_path / "counterpoint.toml")
    registry = open_registry(settings)
    try:
        assert registry.names == ("people", "visits")
        assert registry.data_set("visits").session().rule == cp.Filter(cp.zCDP(0.5))
        assert first_key(registry) is not None and first_key(registry) is None
    finally:
        registry.close()
    assert {file.name for file in tmp_path.iterdir()} >= {"witness", "books"}
    assert (tmp_path / "books" / "ledger.db.data-key").stat().st_mode & 0o077 == 0


def test_a_configured_stream_says_how_far_from_each_other_the_items_of_a_unit_are(tmp_path):
    text = """
[streams.reports]
budget = { measure = "zCDP", rho = 0.5 }
unit = "phone"
per_unit = 10
"""
    registry = open_registry(config.read(f"{text}apart = 100", tmp_path))
    try:
        counter = registry.data_set("reports").session().launch(cp.Counter(rho="0.1")).mechanism
        assert counter == cp.Counter(rho="0.1", bound=1, per_unit=10, clamp=False, min_separation=100)
    finally:
        registry.close()
    for wrong, reason in (("0", "apart must be at least 1"), ("'far'", "Expected `int"), ("1.5", "Expected `int")):
        with pytest.raises(InvalidParameter, match=reason):
            open_registry(config.read(f"{text}apart = {wrong}", tmp_path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ledgr = 'ledger.db'", "unknown field `ledgr`"),
        ("[tables.people]\nsource = 'a'\nunit = 'p'\nbudget = {}", "missing required field `rows_per_unit`"),
        (f"[tables.people]\nsource = 'a'\n{DECLARED}\ncolumns.b = {{ type = 'code' }}", "Invalid value 'code'"),
        (
            f"[tables.people]\nsource = 'a'\n{DECLARED}\ncolumns.b = {{ type = 'number', low = 0, hi = 1 }}",
            "unknown field `hi`",
        ),
        ("[tables.people", "is not TOML"),
        ("[streams.visits]\nbound = 1", "missing required field `budget`"),
    ],
)
def test_a_configuration_that_is_not_understood_is_refused(text, reason):
    with pytest.raises(InvalidParameter, match=reason):
        config.read(text)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("{ measure = 'PureDP', epsilon = 1, delta = 0 }", "no field"),
        ("{ measure = 'Nothing' }", "measure is one of"),
        ("{ measure = 'PureDP', epsilon = -1 }", "epsilon"),
    ],
)
def test_a_budget_that_is_none_is_refused_before_anything_is_made(tmp_path, budget, reason):
    text = f"[streams.visits]\nbudget = {budget}"
    with pytest.raises(cp.CounterpointError, match=reason):
        open_registry(config.read(text, tmp_path))


def test_an_sqlite_ledger_has_one_worker_and_tls_needs_both_files(tmp_path):
    settings = config.read("", tmp_path)
    with pytest.raises(InvalidParameter, match="keep the ledger in PostgreSQL"):
        serve(settings, Listening(workers=2), print)
    with pytest.raises(InvalidParameter, match="both --certificate and --private-key"):
        serve(settings, Listening(certificate="a.pem"), print)
    assert not list(tmp_path.iterdir())


def test_workers_of_a_ledger_in_postgresql_need_one_key_for_fingerprints(tmp_path):
    settings = config.read("ledger = 'postgresql:///x'", tmp_path)
    with pytest.raises(InvalidParameter, match="needs a line at its top, data_key_file"):
        settings.fingerprint_key("people")


def test_limits_are_known_by_name():
    assert limits_of(config.read("limits.burst = 5")).burst == 5
    with pytest.raises(InvalidParameter, match="there is no limit 'bursts'"):
        limits_of(config.read("limits.bursts = 5"))


def test_two_data_sets_of_one_name_are_refused(tmp_path):
    twice = config.read(
        "[streams.a]\nbudget = {}\n[tables.a]\nsource = 'a'\nunit = 'p'\nrows_per_unit = 1\nbudget = {}"
    )
    with pytest.raises(InvalidParameter, match="two data sets are called 'a'"):
        _ = twice.data_sets


def test_tls_by_flags(tmp_path):
    certificate(tmp_path)
    flags = ("--certificate", tmp_path / "certificate.pem", "--private-key", tmp_path / "private.pem")
    trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    with Served(tmp_path, *flags) as service, service.client(verify=trusted) as client:
        assert service.url.startswith("https://") and client.get("/v1/data-sets").json() == []


def test_live_tables_timestamps_and_derived_columns_are_declared(tmp_path):
    settings = config.read(
        """
        [live.carts]
        key = "item"
        unit = "user"
        rows_per_unit = 3
        budget = { measure = "PureDP", epsilon = 1 }
        columns.item = { type = "text" }
        columns.user = { type = "text" }
        columns.price = { type = "number", low = 0, high = 9 }
        columns.at = { type = "timestamp", low = "2025-01-01T00:00:00Z", high = "2026-01-01T00:00:00Z", zone = "UTC" }
        [tables.people]
        source = "people.csv"
        unit = "person"
        rows_per_unit = 1
        budget = { measure = "PureDP", epsilon = 1 }
        columns.age = { type = "number", low = 0, high = 100 }
        columns.double = { type = "derived", expression = "age * 2", low = 0, high = 200 }
        """,
        tmp_path,
    )
    (tmp_path / "people.csv").write_text("person,age\n1,34\n2,51\n")
    carts, people = (settings.binding(name, settings.data_sets[name]).source() for name in ("carts", "people"))
    assert isinstance(carts, cp.LiveTable)
    with cp.Session(people, cp.PureDP(10**6)) as session:
        assert session.launch(cp.Laplace(10**5)).ask(cp.sum("double")) == 170
    with pytest.raises(InvalidParameter, match="two data sets are called 'carts'"):
        _ = msgspec.structs.replace(settings, tables={"carts": settings.tables["people"]}).data_sets
    with pytest.raises(InvalidParameter, match="derived"):
        config.read("[live.x]\nkey = 'k'\nbudget = {}\ncolumns.a = { type = 'derived', expression = 'b' }")


def test_data_check_shows_what_a_declaration_makes_of_a_file_and_serves_nothing(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("id,age\n1,41\n2,170\n2,\n")
    (tmp_path / "people.toml").write_text(
        'unit = "id"\nrows_per_unit = 1\nbudget = { measure = "PureDP", epsilon = 1 }\n'
        'columns.age = { type = "number", low = 0, high = 120 }\n'
    )
    shown = CliRunner().invoke(app, ["data", "check", str(people)])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("RAW DATA") and "above the highest bound, clamped: 1 (33 %)" in shown.output
    said = msgspec.json.decode(CliRunner().invoke(app, ["data", "check", str(people), "--json"]).output)
    assert "raw_data" in said and said["rows_dropped"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "people.toml"}, "no ledger, no key, no report"


def test_data_check_takes_the_declaration_from_a_configuration(tmp_path):
    for name in ("people.csv", "march.csv"):
        (tmp_path / name).write_text("id,age\n1,41\n")
    table = (
        'unit = "id"\nrows_per_unit = 1\nbudget = {{ measure = "PureDP", epsilon = 1 }}\n'
        'columns.age = {{ type = "number", low = 0, high = {high} }}\nsource = "{source}"\n'
    )
    config = tmp_path / "counterpoint.toml"
    one = "[tables.people]\n" + table.format(high=30, source="people.csv")
    config.write_text(one)

    def clamped(*more):
        shown = CliRunner().invoke(app, ["data", "check", *more, "--config", str(config), "--json"])
        return shown if shown.exit_code else msgspec.json.decode(shown.output)["columns"][1]["above"]

    assert clamped(str(tmp_path / "people.csv")) == 1
    assert clamped(str(tmp_path / "march.csv")) == 1, "the only table's declaration holds for next month's file, too"
    config.write_text(one + "[tables.other]\n" + table.format(high=90, source="other.csv"))
    assert clamped(str(tmp_path / "people.csv")) == 1
    refused = clamped(str(tmp_path / "march.csv"))
    assert refused.exit_code == 1 and "--name" in refused.output and "people, other" in refused.output
    assert clamped(str(tmp_path / "march.csv"), "--name", "other") == 0

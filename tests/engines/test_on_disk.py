"""Tables larger than memory: the same rows and answers from a private folder on disk, which is gone afterwards."""

import gc
import os
import stat
import tempfile
from pathlib import Path

import duckdb
import pytest

from counterpoint.engines.engine import PrivateFolder
from counterpoint.errors import DataFailed, InvalidParameter
from counterpoint.privacy.secret import reveal
from counterpoint.queries.aggregates import count
from counterpoint.queries.aggregates import sum as sum_of
from counterpoint.schema.columns import category, number
from counterpoint.sources.table import Table

ROWS = duckdb.sql(
    "SELECT i % 40 AS id, i % 7 AS kind, (i * 7919) % 100 AS amount FROM range(300) AS t(i)"
).to_arrow_table()
COLUMNS = {"kind": category(range(7)), "amount": number(0, 50)}
KEY = b"thirty-two secret bytes for this"


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Where private folders are made in these tests."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def bound(memory: str | None = "200MB") -> Table:
    return Table(ROWS, unit="id", rows_per_unit=3, columns=COLUMNS, key=KEY, memory=memory)


def answers(table: Table) -> list[object]:
    requests = (count(), count(by="kind"), sum_of("amount", by="kind"), sum_of("amount", where="kind >= 3"))
    return [reveal(table.resolve(table.pin(), table.prepare(request))) for request in requests]


def test_rows_on_disk_are_the_same_rows(folders):
    with bound() as on_disk, bound(None) as in_memory:
        assert len(list(folders.iterdir())) == 1
        assert on_disk.fingerprint() == in_memory.fingerprint() and on_disk.rows() == in_memory.rows()
        assert answers(on_disk) == answers(in_memory)
        assert answers(on_disk.spread("kind", 2)) == answers(in_memory.spread("kind", 2))


def test_the_engine_keeps_to_its_memory_and_to_its_folder(folders):
    with bound("200MB") as table:
        (folder,) = folders.iterdir()
        engine = table.embedded
        settings = "current_setting('memory_limit'), current_setting('temp_directory')"
        assert engine.run(f"SELECT {settings}") == [("190.7 MiB", f"{folder}/spilled")]
        with pytest.raises(DataFailed):  # the constant refusal: nothing outside can be read any more
            engine.run(f"SELECT * FROM READ_TEXT('{__file__}')")


def test_only_this_user_may_enter_the_folder_and_closing_removes_it(folders):
    table = bound()
    (folder,) = folders.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    table.close()
    assert not folder.exists()
    table.close()


def test_a_table_that_is_forgotten_leaves_nothing_behind(folders):
    bound()
    gc.collect()
    assert not list(folders.iterdir())


@pytest.mark.parametrize("data", ["people.txt", "nothing.parquet", 7])
def test_data_that_cannot_be_read_leaves_nothing_behind(data, folders):
    with pytest.raises(InvalidParameter):
        Table(data, unit="id", rows_per_unit=1, memory="1GB")
    assert not list(folders.iterdir())


def test_a_declaration_that_does_not_fit_leaves_nothing_behind(folders):
    with pytest.raises(InvalidParameter):
        Table(ROWS, unit="nobody", rows_per_unit=1, memory="1GB")
    assert not list(folders.iterdir())


def test_a_fork_leaves_the_folder_to_its_parent(folders):
    folder = PrivateFolder()
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(folder.path).is_dir()
    folder.remove()
    assert not Path(folder.path).exists()


@pytest.mark.parametrize("memory", ["", "2", "2gb", "2 GB; SELECT 1", "1MB", "99MB", "-1GB", "1e9GB", 2, 2.0, b"2GB"])
def test_what_is_no_amount_of_memory_is_refused(memory, folders):
    with pytest.raises(InvalidParameter, match="such as '2GB', of at least 100MB"):
        bound(memory)
    assert not list(folders.iterdir())


def test_data_that_another_engine_holds_has_no_such_limit():
    with pytest.raises(InvalidParameter, match="PostgreSQL holds this data: leave out memory"):
        Table("postgresql://nowhere/people", unit="id", rows_per_unit=1, memory="2GB", relation="people")


def test_a_path_and_a_frame_are_copied_alike(folders):
    path = folders / "people.csv"
    path.write_text("id,kind,amount\n" + "".join(f"{i % 40},{i % 7},{i * 7919 % 100}\n" for i in range(300)))
    with bound(None) as frame, Table(path, unit="id", rows_per_unit=3, columns=COLUMNS, memory="200MB") as file:
        assert [sum(answers(table)[1]) for table in (frame, file)] == [120, 120]


@pytest.mark.long
def test_a_table_larger_than_the_memory_is_bound_and_answered(folders):
    """160 MB of hashes, which no compression makes smaller, in 100 MB; half of the rows belong to units with four."""
    path, many = folders / "large.parquet", 2 * 10**6
    wide = ", ".join(f"(hash(i + {n}::BIGINT * {many}) // 4)::BIGINT AS x{n}" for n in range(10))
    person = f"CASE WHEN i % 2 = 0 THEN i // 2 % {many // 8} ELSE -i END"
    duckdb.sql(f"SELECT {person} AS id, {wide} FROM range({many}) AS t(i)").write_parquet(str(path))
    columns = {f"x{n}": number(0, 2**62) for n in range(10)}
    with Table(path, unit="id", rows_per_unit=2, columns=columns, key=KEY, memory="100MB") as table:
        kept = reveal(table.resolve(table.pin(), table.prepare(count())))
        assert kept == many // 2 + 2 * many // 8

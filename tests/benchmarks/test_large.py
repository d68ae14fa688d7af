"""The rows of the benchmark of large tables are those that its page speaks of."""

import duckdb
from bench.large import made_up


def test_one_person_in_nine_has_four_rows_and_the_others_two(tmp_path):
    made_up(tmp_path, 1000)
    each = f"SELECT COUNT(*) AS rows FROM '{tmp_path}/rows.parquet' GROUP BY person"
    assert sorted(duckdb.sql(f"SELECT rows, COUNT(*) FROM ({each}) GROUP BY rows").fetchall()) == [(2, 400), (4, 50)]

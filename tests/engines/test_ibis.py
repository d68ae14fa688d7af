"""An Ibis table expression is a table: run once by its own backend, known by its module, never imported."""

import subprocess
import sys

import pyarrow as pa
import pytest
from tests.sources import people

from counterpoint.errors import InvalidParameter
from counterpoint.queries import aggregates as requests
from counterpoint.schema.columns import number
from counterpoint.sources.table import Table

FRAME = pa.table({"who": [1, 1, 2, 3], "x": [3, 4, 50, None]})
DECLARED = {"unit": "who", "rows_per_unit": 2, "columns": {"x": number(0, 10)}, "key": b"sixteen bytes..."}


class Expression:
    """As much of an Ibis table expression as there is to see from outside."""

    def __init__(self, frame=FRAME, names=None, error=None):
        self.frame, self.columns, self.error = frame, tuple(names or frame.column_names), error
        self.runs = 0

    def to_pyarrow(self):
        self.runs += 1
        if self.error is not None:
            raise self.error
        return self.frame


class Streaming(Expression):
    """Newer ones speak Arrow's interface, too, and would run once for every reader of it."""

    def __arrow_c_stream__(self, requested_schema=None):
        self.runs += 1
        return self.frame.__arrow_c_stream__(requested_schema)


class Column:
    """An expression of one column has no columns."""

    def to_pyarrow(self):
        return FRAME["x"]


for stand_in in (Expression, Streaming, Column):
    stand_in.__module__ = "ibis.expr.types.relations"


@pytest.mark.parametrize("kind", [Expression, Streaming])
def test_an_expression_is_run_once_and_gives_what_its_arrow_table_gives(kind):
    expression = kind()
    source, same = Table(expression, **DECLARED), Table(FRAME, **DECLARED)
    assert people.found(source, requests.sum("x")) == people.found(same, requests.sum("x")) == (17,)
    assert source.pin() == same.pin() and expression.runs == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Expression(names=["who", "WHO"]), "upper and lower case"),
        (Expression(error=ValueError("row 7 holds 'Ann'")), "^the data could not be read as a table$"),
        (Expression(error=KeyError("x")), "^the data could not be read as a table$"),
        (Column(), "an Ibis table, or a postgresql:// URL, not a Column"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_word_of_the_data(data, words):
    with pytest.raises(InvalidParameter, match=words) as refused:
        Table(data, **DECLARED)
    assert "Ann" not in str(refused.value) and refused.value.__cause__ is None and refused.value.__context__ is None


def test_something_else_with_such_a_method_is_not_run():
    class Stranger(Expression):
        pass

    stranger = Stranger()
    with pytest.raises(InvalidParameter, match="not a Stranger"):
        Table(stranger, **DECLARED)
    assert stranger.runs == 0


def test_ibis_is_not_imported_for_it():
    bind = "cp.Table(pa.table({'x': [1]}), unit=cp.each_row)"
    code = f"import counterpoint as cp, pyarrow as pa, sys; {bind}; print('ibis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_real_ibis_table_is_a_table():
    ibis = pytest.importorskip("ibis", reason="Ibis: ibis-framework is not installed")
    expression = ibis.memtable(FRAME.to_pandas()).filter(ibis._.who < 3)
    assert people.found(Table(expression, **DECLARED), requests.sum("x")) == (17,)

"""A CSV file is read row by row: no bytes in one row change how another is read, or keep it from being read."""

import io
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.engines import inputs as csv_rows
from counterpoint.errors import InvalidParameter

WIDTH = 3


def read(content, width=WIDTH):
    """The rows after the header, as tuples."""
    batches = list(csv_rows.batches(io.BytesIO(content), width))
    assert all(len(batch) % width == 0 for batch in batches)
    return [tuple(batch[i : i + width]) for batch in batches for i in range(0, len(batch), width)]


def written(row, end="\r\n", always=False):
    """A row as a program writes it: in quotes where a value holds what would end it, or always."""
    quoted = ['"' + value.replace('"', '""') + '"' if always or set(value) & set(',"\r\n') else value for value in row]
    return (",".join(quoted) + end).encode()


values = st.text(st.sampled_from('a,"\n\r \x00é�😀'), max_size=6) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)
records = st.tuples(*[values] * WIDTH)
ends = st.sampled_from(["\n", "\r\n"])
styles = st.booleans()
lines = st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")) | st.lists(
    st.sampled_from([b'"', b",", b" ", b"\r", b"\xff", b"\xed\xa0\x80", b"\0", b"x", b'""', "é".encode()]), max_size=9
).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(records, ends, styles), max_size=6))
def test_what_a_program_wrote_is_read_as_it_was_written(rows):
    content = b"".join(written(row, end, style) for row, end, style in rows)
    assert read(content) == [row for row, _, _ in rows]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(records, ends, styles), max_size=5), records, ends, styles, st.integers(0, 5))
@example([(("1", "a", "2"), "\n", False)], ("9", 'forged\n1,b,3\n"', "0"), "\n", False, 0)
def test_whatever_the_values_of_a_written_row_hold_it_is_one_row_and_leaves_the_others_alone(
    rows, more, end, style, place
):
    here = [written(*row) for row in rows]
    there = [*here[:place], written(more, end, style), *here[place:]]
    assert Counter(read(b"".join(there))) - Counter(read(b"".join(here))) == Counter([more])


single = records.map(lambda row: tuple(value.replace("\n", " ") for value in row))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(single, ends, styles), max_size=5), lines, ends, st.integers(0, 5))
@example([(("1", "a", "2"), "\n", True)] * 3, b'9,"x', "\n", 1)
@example([(("1", ",b", "2"), "\n", False)] * 3, b'"x', "\n", 1)
@example([(("1", "", "2"), "\n", True)] * 3, b'9,"', "\r\n", 0)
def test_a_damaged_line_adds_at_most_one_row_and_changes_none(rows, line, end, place):
    here = [written(*row) for row in rows]
    there = [*here[:place], line + end.encode(), *here[place:]]
    before, after = Counter(read(b"".join(here))), Counter(read(b"".join(there)))
    assert not before - after and (after - before).total() <= 1


def test_a_damaged_line_that_makes_no_row_with_the_next_ones_takes_none_of_them():
    for damaged in (b'"x', b'8,"x', b'7,8,9,"x'):
        assert read(damaged + b'\n1,"\nb",2\n') == [("1", "\nb", "2")]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(lines, ends), max_size=8), st.integers(1, 9))
def test_where_the_file_is_cut_into_blocks_changes_nothing(rows, size):
    content = b"".join(line + end.encode() for line, end in rows)
    whole = read(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_rows, "_BLOCK", size)
        assert read(content) == whole


@pytest.mark.parametrize("size", [1, 3, 64, 2**22])
def test_a_row_that_is_too_long_is_left_out_by_itself(monkeypatch, size):
    monkeypatch.setattr(csv_rows, "_BLOCK", size)
    monkeypatch.setattr(csv_rows, "LONGEST_ROW", 20)
    fits, long = b"1," + b"x" * 16 + b",2\n", b"1," + b"x" * 17 + b",2\n"
    spanning = b'1,"xxxxxxxx\nyyyyyyyyy",2\n'
    assert read(fits) == [("1", "x" * 16, "2")] and read(long) == read(spanning) == []
    for bad in (long, spanning, long[:-1], b'1,"x\n' + long):
        assert read(fits + bad) == read(fits) and read(bad.rstrip(b"\n") + b"\n" + fits) == read(fits)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"1,2", []),
        (b"1,2,3,4", []),
        (b"", []),
        (b"\r", []),
        (b',,"', []),
        (b",,", [("", "", "")]),
        (b'1,"a"b,3', []),
        (b'1,5" pipe,3', [("1", '5" pipe', "3")]),
        (b'1,5" by 6",3', [("1", '5" by 6"', "3")]),
        (b'1, "a, b" ,3', [("1", "a, b", "3")]),
        (b"1,\xff,3", [("1", "", "3")]),
        (b'1,"\xed\xa0\x80",3', [("1", "", "3")]),
        (b"1,a\rb,3", [("1", "a\rb", "3")]),
        (b"1," + b"x" * 3_000_000 + b",3", [("1", "x" * 3_000_000, "3")]),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_is_read_by_the_stated_rule(line, end, found):
    assert read(line + end) == found


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b", ["a", "b"]),
        (b"a,b\r\n1,2\n", ["a", "b"]),
        (b'\xef\xbb\xbf"a, b",c\n', ["a, b", "c"]),
        (b"a,b\r1,2\r", None),
        (b"a,b\r", None),
        (b'a,"b\n1,2\n3,c"\n', None),
        (b"", None),
        (b"a,b\xff\n", None),
        (b"x" * csv_rows.LONGEST_HEADER + b"\n", None),
    ],
)
def test_the_first_line_alone_names_the_columns(tmp_path, content, names):
    (tmp_path / "a.csv").write_bytes(content)
    if names is not None:
        assert csv_rows.header(tmp_path / "a.csv") == names
        return
    with pytest.raises(
        InvalidParameter, match="must name the columns, separated by commas, in UTF-8, in at most 1048576 bytes"
    ):
        csv_rows.header(tmp_path / "a.csv")

"""Answers as pictures: values and errors as the table has them, and what is mostly noise is said."""

from collections import Counter
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.answers.frame import AnswerTable, plot_answer
from counterpoint.display.charts import ErrorBar, ErrorBars, Series, thinned, written
from counterpoint.ledger.memory import MemoryLedger

SVG = "{http://www.w3.org/2000/svg}"


def session():
    cities = ["Rome"] * 900 + ["Bonn"] * 3
    data = pa.table({"person": range(len(cities)), "city": cities, "age": [40] * len(cities)})
    columns = {"city": cp.category(["Rome", "Bonn"]), "age": cp.number(0, 100, units="years")}
    people = cp.Table(data, unit="person", rows_per_unit=1, columns=columns)
    seeds = (bytes([n]) + bytes(31) for n in range(99))
    return cp.Session(people, within=cp.PureDP(10), ledger=MemoryLedger(seeds=lambda: next(seeds)))


def drawn(picture, narrow=False):
    root = ElementTree.fromstring(picture.svg(narrow=narrow))
    return Counter(element.get("class") for element in root.iter()), "".join(root.itertext())


@pytest.mark.parametrize("narrow", [False, True])
def test_a_keyed_answer_has_a_whisker_for_each_cell_and_says_what_is_noise(narrow):
    answer = session().ask(cp.count(by="city"), epsilon=0.2)
    assert not answer["Rome"].mostly_noise and answer["Bonn"].mostly_noise
    found, words = drawn(answer.plot(), narrow)
    assert found["whisker"] == found["noisy"] == 1 and found["point"] == found["noisy-point"] == 1
    assert words.count("mostly noise") >= 1 and f"± {answer['Rome'].error()}" in words
    assert repr(answer.plot()).endswith("2 values, each within its error with 95 %; 1 mostly noise.>")


def test_the_picture_has_the_numbers_of_the_table():
    answer = session().ask(cp.mean("age", by="city"), epsilon=2)
    picture = answer.plot(probability=0.5)
    assert isinstance(picture, ErrorBars) and picture.sure == "50 %" and "in years" in picture.asked
    for cell, row in zip(picture.cells, answer.table(0.5).rows(), strict=True):
        assert (cell.key, cell.value, cell.error) == (row.city, row.value, row.error)


def test_a_scalar_has_one_whisker():
    answer = session().ask(cp.count(), epsilon=1)
    picture = answer.plot()
    assert [(cell.value, cell.error) for cell in picture.cells] == [(answer, answer.error())]
    assert drawn(picture)[0]["whisker"] == 1


def test_suppressed_values_are_not_drawn():
    answer = session().ask(cp.count(by="city"), epsilon=0.2).suppress(signal_to_noise=3)
    assert answer["Bonn"] is None
    found, words = drawn(answer.plot())
    assert found["noisy-point"] == 0 and "mostly noise" in words


def test_choices_by_key_show_their_rank_errors_in_words_and_no_whisker():
    errors = {"value": ("rank_error", [14, 20])}
    picture = plot_answer(
        AnswerTable({"city": ["Rome", "Bonn"]}, {"value": [40, 41]}, errors, ["", ""]), "median", "0.95"
    )
    found, words = drawn(picture)
    assert "rank within 14 rows" in words and found["point"] == 2 and found["whisker"] == found["whisker-end"] == 0
    dates = AnswerTable({"city": ["Rome"]}, {"value": ["2026-01-01"]}, {"value": ("rank_error", [14])}, [""])
    with pytest.raises(cp.errors.InvalidParameter, match="texts, which no scale shows"):
        plot_answer(dates, "median", "0.95")


def test_several_questions_have_no_common_scale():
    errors = {"n": ("n_error", [3]), "late": ("late_error", [0.5])}
    table = AnswerTable({"carrier": ["UA"]}, {"n": [40], "late": [9.5]}, errors, [""])
    with pytest.raises(
        cp.errors.InvalidParameter, match=r"plot one of them, as in answer\['late'\]\.plot\(\), or answer\.part"
    ):
        plot_answer(table, "select", "0.95")


def test_pictures_of_a_rehearsal_say_that_they_are_made_up():
    rehearsal = session().rehearse()
    answer = rehearsal.ask(cp.count(by="city"), epsilon=1)
    assert "(made up)" in answer.plot().sentence and "made-up" in drawn(rehearsal.plot())[1]


def test_many_cells_are_cut_and_counted():
    picture = ErrorBars("x", ("key",), tuple(ErrorBar(str(n), float(n), 1.0) for n in range(1000)), "95 %")
    found, words = drawn(picture)
    assert found["point"] == 60 and "and 940 more" in words and "and 940 more" in picture.text(80)
    assert len(picture.rows()[1]) == 1000


@pytest.mark.parametrize("values", [[0.0], [-5.0, -7.0], [1e9, 2.0], [None], [], [0.25, None]])
def test_every_scale_can_be_drawn(values):
    cells = tuple(ErrorBar(f"<{n}>", value, None if value is None else 0.0) for n, value in enumerate(values))
    picture = ErrorBars("x", ("key",), cells, "95 %")
    for narrow in (False, True):
        drawn(picture, narrow)
    assert picture.text(80) and picture.text(20, unicode=False).isascii() and "<0>" not in picture._repr_html_()


def test_the_answers_of_a_counter_are_a_line_in_a_band():
    visits = cp.Stream(bound=1)
    counter = cp.Session(visits, within=cp.PureDP(1)).launch(cp.Counter(epsilon=1))
    seen = {}
    for n in range(1, 31):
        visits.append(1)
        seen[n] = counter.ask()
    picture = counter.plot(seen)
    assert isinstance(picture, Series)
    assert picture.points[-1] == (30, seen[30], counter.mechanism.error("0.95", 30))
    found, words = drawn(picture)
    assert found["band"] == 29 and f"{seen[30]:,} ± {picture.points[-1][2]:,.0f}" in words
    assert len(thinned(tuple((n, 0, 1) for n in range(10**5)), 400)) == 400
    empty = counter.plot({})
    assert drawn(empty) and empty.text(80) == empty.sentence
    with pytest.raises(cp.errors.NotCovered, match="Laplace is not a Counter"):
        session().launch(cp.Laplace(1)).plot(seen)


def test_numbers_are_written_as_people_write_them():
    assert [written(x) for x in (0, -3, 1e6, 0.5, 12345.67, None)] == ["0", "-3", "1,000,000", "0.5", "12,345.7", "?"]


def test_a_whisker_reaches_as_far_as_the_error():
    root = ElementTree.fromstring(ErrorBars("x", (), (ErrorBar("a", 50.0, 50.0),), "95 %").svg())
    (line,) = (element for element in root.iter(f"{SVG}line") if element.get("class") == "whisker")
    marks = [element for element in root.iter(f"{SVG}line") if element.get("class") in ("grid", "base")]
    assert {line.get("x1"), line.get("x2")} == {mark.get("x1") for mark in marks}, (
        "from 0 to 100, the ends of the scale"
    )

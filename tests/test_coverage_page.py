"""The table of theory.md that says which measure works in which rule is what the code does."""

import re

import pytest
from docs.make_coverage import MEASURES, PAGE, coverage, delegated, refusal, with_table, written
from tests.test_citations import WORKS, unresolved

from counterpoint.errors import BudgetExceeded
from counterpoint.verify.catalogue.catalogue import CATALOGUE


@pytest.fixture(scope="module")
def cells():
    return coverage()


def test_the_page_says_what_the_code_does(cells):
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page, written(cells)), "make docs writes the table again"


def test_every_refusal_says_why_and_cites_it(cells):
    reasons = {why for row in cells.values() for cell in row.values() for _, why in cell.notes}
    cited = [why for why in reasons if "theory, " in why or any(work in why for work in WORKS)]
    assert sorted(reasons) == sorted(cited)
    assert [unresolved(why) for why in reasons] == [[]] * len(reasons)


def test_a_changed_answer_changes_the_table(cells):
    page = written(cells)
    other = {**cells, "PureDP": {**cells["PureDP"], "filter": cells["TradeOff"]["odometer"]}}
    assert written(other) != page and re.search(r"PureDP \| no \(1\)", written(other))


def test_the_catalogue_has_an_instance_of_every_yes_and_of_no_other_cell(cells):
    short = {"parallel, static": "static", "parallel, continual": "continual"}
    admitted = {f"{short.get(column, column)} {m}" for m, row in cells.items() for column in row if row[column].works}
    assert {instance.name for instance in CATALOGUE if instance.group == "measures"} == admitted


def test_a_budget_that_is_too_small_is_no_refusal_of_a_measure():
    def starved(size, interaction):
        delegated(lambda _: size("1"), interaction)

    with pytest.raises(BudgetExceeded):
        refusal(starved, MEASURES["PureDP"], ("endless",))

"""What people see of what they hold: one line as a repr, a tree of a certificate, one line for a refusal."""

from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

import counterpoint as cp
from counterpoint.display.markup import Markup, element

PEOPLE = {"person": [1, 2, 3], "city": ["Rome", "Rome", "Bonn"], "secret": [41975, 41976, 41977]}


def held():
    """One of each thing that a session gives to a person."""
    import pyarrow as pa

    people = cp.Table(pa.table(PEOPLE), unit="person", rows_per_unit=1, columns={"secret": cp.number(0, 50_000)})
    s = cp.Session(people, within=cp.ApproxDP(2, 1e-6))
    handle = s.launch(cp.Laplace(epsilon=0.1))
    yield from (people, s, handle, s.ask(cp.count(), epsilon=0.1), s.ask(cp.mean("secret"), epsilon=0.1))
    yield from (s.certificate(), s.would_cost(cp.Laplace(epsilon=0.1)), s.would_cost(cp.Laplace(epsilon=9)))
    yield from (s.loss, s.remaining, s.rule, s.partition("city", within=cp.ApproxDP(0.1, 1e-8)), handle.mechanism.claim)
    yield from (s.delegate(cp.ApproxDP(0.1, 1e-8)), s.plot(), *s.history, cp.count(where="city = 'Rome'"))
    yield from (cp.Stream(bound=1), cp.Stream(fields={"page": cp.category(["home"])}), s.certificate().premises[0])
    yield cp.LiveTable(unit="person", rows_per_unit=2, key="row", columns={"age": cp.number(0, 100)})


def test_everything_that_a_person_holds_has_a_repr_of_one_line_without_data():
    for thing in held():
        shown = repr(thing)
        assert "\n" not in shown and len(shown) < 450, shown
        assert "4197" not in shown and " object at 0x" not in shown


def test_a_certificate_with_many_premises_folds_those_beyond_a_dozen():
    def tree(number):
        leaves = tuple(cp.composition.Certificate(f"leaf {n}", "d") for n in range(number))
        html = cp.composition.Certificate("all", "by", leaves)._repr_html_()
        return ElementTree.fromstring(html[html.index("<div") :])

    assert [node.text for node in tree(13).iter("summary")] == ["all"]
    (outer, inner) = tree(40).iter("details")
    assert inner.find("summary").text == "and 28 more" and "open" not in inner.attrib
    assert len(list(inner.iter("li"))) == 28 and len(list(outer.iter("li"))) == 41


def test_a_certificate_is_a_tree_that_folds_below_depth_two():
    deep = cp.composition.Certificate("leaf <1>", "d")
    for level in ("three", "two", "one"):
        deep = cp.composition.Certificate(level, f"by {level}", (deep,))
    html = deep._repr_html_()
    root = ElementTree.fromstring(html[html.index("<div") :])
    details = list(root.iter("details"))
    assert [node.find("summary").text for node in details] == ["one", "two", "three"]
    assert ["open" in node.attrib for node in details] == [True, True, False]
    assert "leaf &lt;1&gt;" in html
    shown = StringIO()
    Console(file=shown, width=60).print(deep)
    assert [line.split()[-1] for line in shown.getvalue().splitlines()[::2]] == ["one", "two", "three", "<1>"]


def test_every_step_of_a_sessions_certificate_is_in_its_display():
    *_, certificate = (thing for thing in held() if isinstance(thing, cp.composition.Certificate) and thing.premises)
    text = "".join(
        ElementTree.fromstring(element("div", Markup(certificate._repr_html_().split("</style>")[1]))).itertext()
    )

    def steps(node):
        yield from (node.statement, node.theorem)
        for premise in node.premises:
            yield from steps(premise)

    assert all(step in text for step in steps(certificate))


def test_a_refusal_is_one_line_that_says_what_was_asked_the_limit_and_what_fits():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    with pytest.raises(cp.BudgetExceeded) as caught:
        s.launch(cp.Laplace(epsilon=2))
    (line,) = caught.value._render_traceback_()
    assert line.startswith(
        "BudgetExceeded: PureDP(2) does not fit: PureDP(0) of PureDP(1) is spent, and at most PureDP(1)"
    )
    assert "(in test_a_refusal_is_one_line" in line, "the function that made the call"


@pytest.mark.parametrize(
    "error",
    [
        cp.errors.SecretLeak,
        cp.errors.TapeMismatch,
        cp.errors.LedgerFailed,
        cp.errors.LedgerTampered,
        cp.errors.FeedFailed,
    ],
)
def test_what_points_at_a_fault_keeps_its_traceback(error):
    assert not hasattr(error("x"), "_render_traceback_")


def test_ipython_shows_refusals_short_and_bugs_in_full(capsys):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config, colors="nocolor")
    shell.run_cell("import counterpoint as cp\ns = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))")
    capsys.readouterr()
    shell.run_cell("s.launch(cp.Laplace(epsilon=2))")
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("BudgetExceeded: PureDP(2) does not fit"), lines
    shell.run_cell("1 // 0")
    assert len(capsys.readouterr().out.strip().splitlines()) > 3


def test_a_terminal_shows_a_session_as_a_timeline_and_a_table():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    s.launch(cp.Laplace(epsilon=0.25))
    shown = StringIO()
    Console(file=shown, width=100).print(s)
    assert "1 Laplace  ●" in shown.getvalue() and "would fit" in shown.getvalue()
    s.close()
    Console(file=shown, width=100).print(s)

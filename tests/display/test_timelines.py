"""A session as a timeline: every event is drawn once, large sessions stay legible, nothing private is in a picture."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest

import counterpoint as cp
from counterpoint.display.timeline import MOST_LANES, Lane, Mark, folded, levels, zoomed
from counterpoint.display.timeline_svg import TimelinePicture
from counterpoint.ledger.commands import LaunchCommand
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.session.fit import launchable
from counterpoint.session.timeline import _Apart, timeline_of

SVG = "{http://www.w3.org/2000/svg}"


def classes(picture, narrow=False):
    """How often each class is in the drawing; it parses as XML."""
    root = ElementTree.fromstring(picture.svg(narrow=narrow))
    return Counter(element.get("class") for element in root.iter()), root


def played(ledger=None, seed=1):
    """A session with every kind of mark, on a stream."""
    visits = cp.Stream(bound=1, fields={"page": cp.category(["home", "shop"]), "n": cp.number(0, 1)})
    seeds = (bytes([seed, n]) + bytes(30) for n in range(200))
    s = cp.Session(visits, within=cp.PureDP(1), ledger=ledger or MemoryLedger(seeds=lambda: next(seeds)))
    visits.append({"page": "home", "n": 1})
    noisy = s.launch(cp.Laplace(epsilon=0.2, asks=2))
    noisy.ask(cp.count())
    with pytest.raises(cp.BudgetExceeded):
        s.launch(cp.Laplace(epsilon=0.9))
    parts = s.partition("page", k=2, within=cp.PureDP(0.15))
    home = parts["home"].launch(cp.Laplace(epsilon=0.1, asks=3))
    home.ask(cp.count())
    inner = s.delegate(cp.PureDP(0.25))
    given = inner.launch(cp.Laplace(epsilon=0.05))
    with pytest.raises(cp.BudgetExceeded):
        inner.launch(cp.Laplace(epsilon=0.5))
    given.ask(cp.count())
    noisy.ask(cp.count(where="page = 'home'"))
    return s


def test_every_event_of_a_session_is_a_mark_in_its_lane():
    timeline = timeline_of(played())
    assert [(lane.number, lane.name, lane.depth) for lane in timeline.lanes] == [
        ("1", "Laplace", 0),
        ("2", "by page", 0),
        ("a", "home", 1),
        ("3", "delegated", 0),
        ("a", "Laplace", 1),
    ]
    kinds = [event.kind for event in timeline.events]
    assert " ".join(kinds) == "launch ask refused reserve part launch ask reserve launch refused ask ask"
    first, parts, home, given, inner = timeline.lanes
    assert [mark.at for mark in first.asks] == [2, 12] and first.halted == 12
    assert parts.reserve and given.reserve and [mark.at for mark in given.refusals] == [10]
    assert home.halted is None and inner.halted == 11 and [mark.at for mark in timeline.refusals] == [3]
    assert (timeline.lost, round(timeline.reserved, 6), timeline.left) == (0.75, 0.55, 0.25)


def test_the_drawing_has_each_mark_by_its_shape():
    for narrow in (False, True):
        found, root = classes(played().plot(), narrow)
        assert found["ask"] == 4 + 1, "and one in the legend"
        assert found["refused"] == 2 + 1 and found["thick"] == 2 + 1
        assert root.get("role") == "img" and root.get("aria-label").endswith("4 asks; 2 refused, free.")
        hatched = [e for e in root.iter() if (e.get("fill") or "").startswith("url(#cp-")]
        assert len(hatched) >= 4, "two lanes, the reserved part of the loss, and the legend"
        lanes = [e.get("aria-label") for e in root.iter(f"{SVG}g") if e.get("aria-label")]
        assert lanes[0] == "1 Laplace: launched at event 1 for 0.2, 2 asks, halted at event 12"


def test_a_durable_record_draws_the_same_timeline(tmp_path):
    ledger = tmp_path / "ledger.db"
    with played(ledger=str(ledger)) as s:
        assert timeline_of(s) == timeline_of(played())


def test_steps_are_increases_by_the_rule_that_admitted_them():
    s = cp.Session(cp.Stream(bound=1), within=cp.ApproxDP(1, 1e-6))
    for _ in range(60):
        s.launch(cp.Laplace(epsilon=0.02))
    timeline = timeline_of(s)
    assert timeline.lost == float(s.loss.epsilon) < 1.2 and len(timeline.steps) == 60
    assert all(a.after == b.before for a, b in zip(timeline.steps, timeline.steps[1:], strict=False))


@pytest.mark.parametrize(
    ("rule", "mechanism", "symbol", "ceiling"),
    [
        (cp.Odometer(cp.zCDP), cp.Gaussian(rho=0.1), "ρ", None),
        (cp.Filter(cp.zCDP(1)), cp.Gaussian(rho=0.1), "ρ", 1.0),
        (cp.Filter(cp.GaussianDP(1)), cp.Gaussian(mu=0.1), "μ", 1.0),
        (cp.Filter(cp.RenyiDP(8, 1)), cp.Laplace(0.1), "ε", 1.0),
        (cp.Slots([cp.PureDP(0.1)] * 5), cp.Laplace(0.1), "ε", 0.5),
    ],
    ids=repr,
)
def test_every_measure_has_an_axis(rule, mechanism, symbol, ceiling):
    s = cp.Session(cp.Stream(bound=1), rule=rule)
    s.launch(mechanism).ask(cp.total())
    timeline = timeline_of(s)
    assert timeline.budget.symbol == symbol and timeline.lost > 0
    assert (
        ceiling is None
        if timeline.budget.ceiling is None
        else timeline.budget.ceiling == pytest.approx(ceiling, rel=0.1)
    )
    classes(s.plot())
    assert str(s.plot())


def test_an_empty_session_says_so():
    picture = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).plot()
    found, root = classes(picture)
    assert "Nothing was launched yet." in "".join(root.itertext()) and found["ceiling"] == 1
    assert repr(picture) == "<Picture: Nothing was launched yet; budget ε 1.>"


def test_more_than_thirty_lanes_fold_and_many_asks_become_a_density():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(100))
    for _ in range(45):
        s.launch(cp.Laplace(epsilon=0.1)).ask(cp.total())
    much = s.launch(cp.Laplace(epsilon=1, asks=1000))
    found, root = classes(s.plot())
    lanes = [e for e in root.iter(f"{SVG}g") if e.get("aria-label")]
    assert len(lanes) == 2 and "45 ended" in "".join(root.itertext())
    for _ in range(600):
        much.ask(cp.total())
    found, root = classes(s.plot())
    assert not found["ask"] and 40 < found["density"] < 300
    assert len(s.plot().svg()) < 200_000 and len(s.plot().text(80).splitlines()) == 4


def test_folding_keeps_every_ask_and_never_more_than_thirty_lanes():
    def lane(number, depth=0, over=False):
        return Lane(
            str(number), "x", "", (number,), depth=depth, asks=(Mark(number, ""),), halted=number if over else None
        )

    for lanes in (
        [lane(n, over=n % 2 == 0) for n in range(80)],
        [lane(n, depth=int(n % 4 > 0)) for n in range(80)],
        [lane(n) for n in range(80)],
        [lane(n, depth=n % 3, over=n % 5 == 0) for n in range(80)],
    ):
        few = folded(lanes)
        assert len(few) <= MOST_LANES
        assert sorted(mark.at for one in few for mark in one.asks) == list(range(80))
    assert folded([lane(n) for n in range(30)]) == tuple(lane(n) for n in range(30))


def test_a_thousand_launches_are_drawn_with_few_elements():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(100))
    for _ in range(1000):
        s.launch(cp.Laplace(epsilon=0.1))
    assert len(s.plot().svg()) < 400_000


def test_two_worlds_draw_one_picture():
    """Data that differ, with the same coins: the pictures are equal, as long as no halt depends on answers."""

    def picture(ones):
        visits = cp.Stream(bound=1)
        seeds = (bytes([n]) + bytes(31) for n in range(99))
        s = cp.Session(visits, within=cp.PureDP(1), ledger=MemoryLedger(seeds=lambda: next(seeds)))
        for _ in range(ones):
            visits.append(1)
        noisy = s.launch(cp.Laplace(epsilon=0.5, asks=2))
        answer = noisy.ask(cp.total())
        s.launch(cp.Counter(epsilon=0.1)).ask()
        return s.plot(), answer

    (few, a), (many, b) = picture(0), picture(5000)
    assert a != b and few.svg() == many.svg() and few._repr_html_() == many._repr_html_() and str(few) == str(many)
    assert str(b) not in re.sub(r"#[0-9a-f]{6}|cp-[0-9a-f]{12}|[\d.]+%", "", many._repr_html_())


def test_what_people_choose_is_escaped():
    visits = cp.Stream(fields={"page": cp.text()})
    s = cp.Session(visits, within=cp.PureDP(1))
    parts = s.partition("page", k=2, within=cp.PureDP(0.5))
    parts['<script>alert("x")</script>'].launch(cp.Laplace(epsilon=0.1))
    html = s.plot()._repr_html_()
    assert "<script" not in html and "&lt;script" in html
    classes(s.plot())


def test_a_picture_is_saved_as_an_svg(tmp_path):
    picture = played().plot()
    picture.save(tmp_path / "session.svg")
    root = ElementTree.parse(tmp_path / "session.svg").getroot()
    assert root.tag == f"{SVG}svg" and root.get("viewBox").startswith("0 0 960 ") and "script" not in picture.svg()
    with pytest.raises(cp.errors.InvalidParameter, match=r"use save\('.*session\.svg'\)"):
        picture.save(tmp_path / "session.png")


def test_pictures_on_one_page_do_not_share_patterns():
    one, other = played().plot(), cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).plot()
    ids = re.findall(r'id="(cp-[^"]+)"', one._repr_html_() + other._repr_html_())
    assert len(ids) == 4 == len(set(ids))


def test_a_terminal_without_unicode_gets_ascii(monkeypatch):
    from io import StringIO

    from rich.console import Console

    text = played().plot().text(80, unicode=False)
    assert text.isascii() and "o" in text and "x" in text and "#" in text and "]" in text
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    plain, painted = StringIO(), StringIO()
    Console(file=plain, force_terminal=True, width=80).print(played().plot())
    assert "\x1b[3" not in plain.getvalue() and "●" in plain.getvalue()
    monkeypatch.delenv("NO_COLOR")
    Console(file=painted, force_terminal=True, width=80).print(played().plot())
    assert "\x1b[34m●" in painted.getvalue() and "×" in painted.getvalue()


def test_lines_fit_the_terminal():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(10))
    noisy = s.launch(cp.Laplace(epsilon=1, asks=300))
    for _ in range(300):
        noisy.ask(cp.total())
    for width in (40, 80, 200):
        assert all(len(line) <= width for line in s.plot().text(width).splitlines()[1:])


@pytest.mark.parametrize("highest", [0.003, 0.07, 0.3, 1, 1.1, 2, 7, 10, 33, 1000, 12345])
def test_an_axis_has_a_few_round_numbers(highest):
    marks = levels(highest)
    assert marks[0] == 0 and 3 <= len(marks) <= 6 and marks[-1] <= highest * 1.0001


def test_a_recount_lowers_the_level_to_what_a_revoked_grant_has_used():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    hers = s.grant("ann", cp.PureDP(0.6))
    hers.launch(cp.Laplace(0.2))
    s.revoke(hers)
    with pytest.raises(cp.errors.NotGranted):
        hers.launch(cp.Laplace(0.1))
    s.launch(cp.Laplace(0.1))
    s.recount(hers)
    s.launch(cp.Laplace(0.4))
    timeline = timeline_of(s)
    assert [round(step.after, 6) for step in timeline.steps] == [0.6, 0.7, 0.3, 0.7]
    assert [event.kind for event in timeline.events] == ["reserve", "launch", "refused", "launch", "recount", "launch"]
    assert (round(timeline.left, 6), round(timeline.reserved, 6)) == (0.3, 0.2)
    assert "3 launches lost" in repr(s.plot()) and str(s.plot())


def test_a_launch_that_a_crash_left_open_is_charged_and_not_started():
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    wanted = LaunchCommand((), None, launchable(cp.Laplace("0.5"), s._source), None, None, 0)
    s._engine.ledger.begin("crashed", wanted)
    timeline = timeline_of(s)
    assert [(lane.name, lane.detail) for lane in timeline.lanes] == [("Laplace", "0 asks · not started")]
    assert timeline.lost == float(s.loss.epsilon) == 0.5
    classes(s.plot())


def test_a_session_by_time_keeps_its_order_and_says_when(monkeypatch):
    clock = [1_794_826_800]

    def tick():
        clock[0] += 1200
        return clock[0] - 1200

    monkeypatch.setattr("counterpoint.ledger.ledger.time.time", tick)
    s = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    noisy = s.launch(cp.Laplace(epsilon=0.5, asks=5))
    for _ in range(5):
        noisy.ask(cp.total())
    timeline = timeline_of(s, by="time")
    assert len(timeline.times) == 6 and timeline.times == tuple(sorted(timeline.times))
    places = [timeline.share(at) for at in range(1, 8)]
    assert places == sorted(places) and 0 < places[0] < places[-1] < 1
    _, root = classes(s.plot(by="time"))
    words = "".join(root.itertext())
    assert "12:00" in words and "time, UTC" in words and "number of the event" not in words
    assert timeline_of(s).times == ()
    with pytest.raises(cp.errors.InvalidParameter, match="drawn by='order' or by='time', not by='day'"):
        s.plot(by="day")


def test_events_of_one_second_and_a_clock_that_was_set_back_stay_in_order():
    times = _Apart()
    assert times.placed() == ()
    for number in range(1000):
        times.add(5 if number % 2 else 7)
    assert len({*times.placed()}) == 1000 and times.placed() == tuple(sorted(times.placed()))
    classes(cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).plot(by="time"))
    classes(played().plot(by="time"))


@pytest.mark.parametrize("by", ["order", "time"])
def test_the_parts_of_a_timeline_have_every_event_once_and_begin_where_the_loss_was(by):
    whole = timeline_of(played(), by)
    parts = [zoomed(whole, first, first + 3) for first in (1, 5, 9)]
    assert tuple(event for part in parts for event in part.events) == whole.events
    marks = [mark.at for part in parts for lane in part.lanes for mark in (*lane.asks, *lane.refusals)]
    assert sorted(marks) == sorted(mark.at for lane in whole.lanes for mark in (*lane.asks, *lane.refusals))
    assert [round(part.lost, 6) for part in parts] == [0.5, 0.75, 0.75]
    assert [round(part.reserved, 6) for part in parts] == [0.3, 0.55, 0.55]
    for part in parts:
        shares = [part.share(at) for at in range(1, len(whole.events) + 1)]
        assert shares == sorted(shares) and shares[0] >= 0 and shares[-1] < 1
        assert TimelinePicture(part).text(80) and len(TimelinePicture(part).rows()[1]) == 4
    assert zoomed(whole, 1, len(whole.events)) == whole, "and all of it is all of it"


def test_a_part_of_a_timeline_shows_the_lanes_in_which_something_happens_with_the_reserves_around_them():
    whole = timeline_of(played())
    assert [(lane.number, lane.name) for lane in zoomed(whole, 7, 7).lanes] == [("2", "by page"), ("a", "home")]
    assert [lane.name for lane in zoomed(whole, 12, 12).lanes] == ["Laplace"]


def test_a_part_of_a_timeline_is_drawn_with_its_own_marks_and_no_present():
    part = zoomed(timeline_of(played()), 2, 8)
    for narrow in (False, True):
        found, root = classes(TimelinePicture(part), narrow)
        words = "".join(root.itertext())
        assert found["ask"] == 2 + 1 and found["refused"] == 1 + 1 and "thick" not in found
        assert "now" not in found and "of 1 is lost by then" in words
        assert root.get("aria-label").startswith("Events 2 to 8 of 12: 2 launches, and ε 0.75 of 1 is lost by then")
        steps = [e for e in root.iter() if e.get("class") == "step" and e.get("x1") == e.get("x2")]
        assert len(steps) == 2, "a launch that came before is no step here"


def test_the_order_can_be_traced_from_lane_to_lane():
    timeline = timeline_of(played())
    _, root = classes(TimelinePicture(timeline, trace=True))
    (trace,) = (e for e in root.iter() if e.get("class") == "trace")
    assert len(list(trace)) == 3, "four asks in four lanes, one after the other"
    assert "trace" not in classes(TimelinePicture(timeline))[0]

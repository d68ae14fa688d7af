"""Versions of a data set under one budget: what a refresh changes, and what it never does."""

from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace
from tests.ledger.forging import forge
from tests.ledger.places import DURABLE, Place
from tests.session.deeds import lines
from tests.session.test_stream_parts import Steady
from tests.sources import people

import counterpoint as cp
from counterpoint import checker
from counterpoint.errors import DataChanged, DataInUse, DataReplaced, LedgerTampered, NotAllowed, NotCovered
from counterpoint.ledger.admin import recover
from counterpoint.schema.versions import DeclaredData, why_not_next

KEY = b"k" * 32
SURE = 1000
"""At this epsilon the noise of a count is 0 but for one in e^1000."""


def table(rows, *, cap=1, high=120, unit="person", key=KEY, **options):
    """As many rows as units, one for each."""
    data = {"person": list(range(rows)), "state": ["CA"] * rows, "age": [40] * rows}
    columns = {"age": cp.number(0, high), "state": cp.category(["CA", "NY"])}
    return cp.Table(pa.table(data), unit=unit, rows_per_unit=cap, columns=columns, key=key, **options)


def budgeted(**options):
    return cp.Session(table(10), within=cp.PureDP(10**6), **options)


@pytest.fixture(params=["memory", *DURABLE])
def place(request, tmp_path):
    return Place(request.param, tmp_path)


def sure(session, **options):
    return int(session.ask(cp.count(), epsilon=SURE, **options))


def test_the_account_goes_on_and_launches_see_the_new_rows(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        assert sure(s) == 10
        before = s.loss
        made = s.refresh(table(20, cap=2, high=90), note="April")
        assert (made.number, s.data_version, s.loss) == (2, 2, before)
        assert sure(s) == 20
        assert s.loss.epsilon == 2 * SURE
        assert s.launch(cp.Laplace(1)).data_version == 2
        s._engine.ledger.verify()


def test_a_handle_keeps_its_version_while_its_rows_are_kept(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        first = s.launch(cp.Laplace(2 * SURE, asks=2))
        s.refresh(table(20), keep=True)
        second = s.launch(cp.Laplace(SURE))
        assert (first.ask(cp.count()), second.ask(cp.count()), first.ask(cp.count())) == (10, 20, 10)


def test_without_its_rows_a_handle_says_so_and_its_answers_stay(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        handle = s.launch(cp.Laplace(2 * SURE, asks=2))
        told = handle.ask(cp.count(), id="told")
        s.refresh(table(20, high=90))
        history = s.history
        with pytest.raises(DataReplaced, match="version 1 of the data"):
            handle.ask(cp.count(), id="new")
        assert s.history == history
        assert handle.ask(cp.count(), id="told") == told
        assert s.at(handle.path).ask(cp.count(), id="told") == told


def test_a_question_is_repeated_by_its_id_after_any_refresh(place):
    """Also where bounds and caps are others by now, so that the request would be another one."""
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        asked = cp.sum("age"), {"epsilon": 1, "id": "q"}
        told, launched = s.ask(asked[0], **asked[1]), s.launch(cp.Laplace(1), id="L")
        s.refresh(table(20, cap=3, high=90))
        loss = s.loss
        assert s.ask(asked[0], **asked[1]) == told
        assert s.launch(cp.Laplace(1), id="L").path == launched.path
        assert s.loss == loss


@pytest.mark.parametrize("kept", [True, False])
def test_partitions_and_samples_keep_their_version_and_what_is_launched_in_them_does(place, kept):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        parts = s.partition("state", within=cp.PureDP(10 * SURE))
        parts["CA"].launch(cp.Laplace(1))
        inner = parts["CA"].delegate(cp.PureDP(2 * SURE))
        sampled = s.delegate(cp.PureDP(20), sampled="0.5")
        s.refresh(table(20), keep=kept)
        assert [one.data_version for one in (s, parts["CA"], inner, sampled)] == [2, 1, 1, 1]
        if kept:
            assert sure(inner) == sure(parts["CA"]) == 10
            assert parts["NY"].launch(cp.Laplace(1)).data_version == 1
            assert sampled.launch(cp.Laplace(1)).data_version == 1
        else:
            loss = inner.loss
            for session in (inner, sampled):
                with pytest.raises(DataReplaced):
                    session.ask(cp.count(), epsilon=1)
                with pytest.raises(DataReplaced):
                    session.launch(cp.Laplace(1))
            assert inner.loss == loss
        assert s.partition("state", within=cp.PureDP(1))["CA"].data_version == 2
        assert s.delegate(cp.PureDP(1), sampled="0.5").data_version == 2
        s._engine.ledger.verify()


def test_a_grant_goes_on_and_sees_the_new_version_by_number_and_time_alone(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        hers = s.grant("ann", cp.PureDP(10 * SURE))
        assert sure(hers) == 10
        s.acting_as("olga").refresh(table(20), note="a file of April")
        assert sure(hers) == 20
        assert [(one.number, one.who, one.note, one.fingerprint, one.declared) for one in hers.versions] == [
            (1, "", "", "", None),
            (2, "", "", "", None),
        ]
        assert (s.versions[1].who, s.versions[1].note) == ("olga", "a file of April")
        assert "April" not in repr(hers.history)
        with pytest.raises(NotAllowed, match="through the whole session"):
            hers.refresh(table(30))


REFUSED = {
    "the unit would be each row": lambda: cp.Table(pa.table({"age": [1]}), unit=cp.each_row, key=KEY),
    "the unit would be 'state'": lambda: table(5, unit="state"),
    "units would be named by texts": lambda: table(5, unit_type="text"),
    "neighbours would be declared by 'replace'": lambda: table(5, neighbours="replace"),
    "a row would be one of a group of sources": lambda: cp.Sources(one=table(5), unit="person"),
    "a row would be one of a stream": lambda: cp.Stream(bound=1),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_no_version_of_the_same_units_is_refused_with_the_reason(place, reason):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        history = s.history
        with pytest.raises(NotCovered, match=reason):
            s.refresh(REFUSED[reason]())
        assert (s.history, s.data_version, sure(s)) == (history, 1, 10)


def test_several_tables_are_refreshed_together():
    def both(rows, high=120):
        visits = cp.Table(pa.table({"person": [0, 1], "n": [1, 1]}), unit="person", rows_per_unit=2, key=KEY)
        return cp.Sources(people=table(rows, high=high), visits=visits, unit="person")

    with cp.Session(both(10), within=cp.PureDP(10**6)) as s:
        assert int(s.ask(cp.count(of="people"), epsilon=SURE)) == 10
        old = s.launch(cp.Laplace(2, asks=2))
        told = old.ask(cp.count(of="people"), id="told")
        s.refresh(both(20, high=90))
        assert int(s.ask(cp.count(of="people"), epsilon=SURE)) == 20
        assert old.ask(cp.count(of="people"), id="told") == told
        with pytest.raises(NotCovered, match="people: neighbours"):
            s.refresh(cp.Sources(people=table(5, neighbours="replace"), unit="person"))


def test_a_member_that_is_named_otherwise_is_found_by_its_name():
    one = DeclaredData("table", ("p",), ("whole",), "add-or-remove", "")
    whole = DeclaredData("group of sources", ("p",), ("whole",), "", "", None, (("a", one),))
    assert why_not_next(whole, replace(whole, members=(("a", one), ("b", one)))) is None
    other = replace(one, unit_types=("text",))
    assert "a: units would be named by texts" in why_not_next(whole, replace(whole, members=(("a", other),)))


def test_the_same_id_refreshes_once(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        first = s.refresh(table(20), id="April")
        assert s.refresh(table(20), id="April") == first
        assert [one.number for one in s.versions] == [1, 2]


def test_a_refusal_of_the_rule_is_the_same_before_and_after_a_refresh(place):
    with place.session(cp.PureDP(1), source=table(10)) as s:
        s.launch(cp.Laplace(1))
        s.refresh(table(20))
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.0001"))
        s._engine.ledger.verify()


def test_while_the_data_are_closed_they_can_be_refreshed_and_stay_closed(place):
    with place.session(cp.PureDP(10**6), source=table(10)) as s:
        s._engine.close_data()
        s.refresh(table(20))
        assert s.data_closed
        s.reopen()
        assert sure(s) == 20


def test_the_picture_and_the_certificate_of_a_refreshed_session_are_drawn():
    s = budgeted()
    sure(s)
    s.refresh(table(20))
    assert "version" in "".join(line.what for line in s.history)
    assert s.plot()._repr_html_()
    assert str(s.certificate())


def test_a_rehearsal_of_a_refreshed_session_has_the_new_declaration():
    s = budgeted()
    s.refresh(table(20, high=300))
    assert s.rehearse().ask(cp.sum("age"), epsilon=1).made_up


def test_rows_are_let_go_of_once_nothing_reads_them():
    s, gone = budgeted(), []
    data = s._engine.data
    data.begin_reading(1)
    data.move_on(2, table(20), keep=False, let_go=lambda: gone.append(1))
    assert not gone
    data.end_reading(1)
    assert gone == [1]


# ----------------------------------------------------------------------------------------- what must not show


def test_that_nothing_changed_does_not_show(tmp_path):
    """Neighbours may differ in one version alone: equal rows in both would tell which world this is."""
    s = budgeted(ledger=tmp_path / "ledger.db")
    s.ask(cp.count(), epsilon=1, id="one")
    s.refresh(table(10))
    s.ask(cp.count(), epsilon=1, id="two")
    s.refresh(table(10))
    s.refresh(table(11))
    one, two = (checker._read(s.receipt(id)[0].receipt, "it") for id in ("one", "two"))
    assert one["data"] != two["data"]
    assert (one["data_version"], two["data_version"]) == (1, 2)
    assert len({version.fingerprint for version in s.versions}) == 4
    kinds = [fact.kind for fact in s.history]
    assert kinds.count("rows") == kinds.count("version") == 3, "whether the rows were the same or not"
    s.close()


@settings(max_examples=25)
@given(
    st.lists(people.worlds, min_size=1, max_size=3),
    st.lists(st.one_of(st.none(), people.units), min_size=3, max_size=3),
    st.sampled_from(["add-or-remove", "replace"]),
    st.lists(
        st.tuples(st.sampled_from(["launch", "ask", "old", "refresh"]), people.questions), min_size=4, max_size=15
    ),
)
def test_on_neighbouring_versions_with_equal_coins_everything_public_is_the_same(worlds, units, neighbours, doings):
    """One unit's rows differ in every version, or in some: errors, history, versions, losses and repr do not."""

    def drive(with_unit):
        tables = []
        for number, world in enumerate(worlds):
            left = {**world, 10: [people_row(number)]} if neighbours == "replace" and not with_unit else world
            own = units[number]
            rows = {**left, 9: own} if with_unit and own is not None else left
            tables.append(people.table(rows, 3, neighbours))
        session, seen, handle, number = cp.Session(tables[0], cp.PureDP(5), ledger=Steady()), [], None, 1
        for deed, question in doings:
            try:
                if deed == "launch" or handle is None:
                    handle = session.launch(cp.Laplace("0.01", asks=3))
                elif deed == "refresh":
                    session.refresh(tables[min(number, len(tables) - 1)], keep=number % 2 == 0, note=f"{number}")
                    number += 1
                else:
                    (handle if deed == "old" else session.launch(cp.Laplace("0.01"))).ask(question)
            except cp.CounterpointError as error:
                seen.append((type(error), str(error)))
            versions = [(one.number, one.declared, one.note, one.fingerprint) for one in session.versions]
            seen.append((session.loss, lines(session), versions, repr(session), session.data_version))
        return seen

    assert drive(False) == drive(True)


def people_row(number):
    return {
        "income": 1.0,
        "tokens": number,
        "state": "NY",
        "vip": True,
        "zip": "10001",
        "age": 18,
        "born": None,
    }


# ------------------------------------------------------------------------------------------------ reopening, crashing


@pytest.fixture(params=DURABLE)
def kept(request, tmp_path):
    return Place(request.param, tmp_path)


def reopened(place, source, **options):
    ledger = place.ledger()
    try:
        return cp.open(ledger, source=source, **options)
    except BaseException:
        ledger.close()
        raise


def test_changed_data_say_what_to_do_and_become_the_next_version_when_told_to(kept):
    with kept.session(cp.PureDP(10**6), source=table(10)) as s:
        told = s.ask(cp.sum("age"), epsilon=1, id="q")
        handle = s.launch(cp.Laplace(2 * SURE, asks=2))
    with pytest.raises(DataChanged, match='refresh="why"'):
        kept.reopened(table(20))
    with reopened(kept, table(20, high=90), refresh="the file of April") as s:
        assert (s.data_version, sure(s), s.versions[1].note) == (2, 20, "the file of April")
        assert s.ask(cp.sum("age"), epsilon=1, id="q") == told
        with pytest.raises(DataReplaced):
            s.at(handle.path).ask(cp.count())
    with pytest.raises(DataChanged):
        kept.reopened(table(10))
    with reopened(kept, table(20, high=90), earlier=[table(10)]) as s:
        assert s.at(handle.path).ask(cp.count()) == 10
        s._engine.ledger.verify()
    with pytest.raises(DataChanged, match="none of those on record"):
        reopened(kept, table(20, high=90), earlier=[table(11)])


def test_a_refresh_as_it_is_opened_is_made_also_if_nothing_changed(kept):
    with kept.session(cp.PureDP(10**6), source=table(10)):
        pass
    with reopened(kept, table(10), refresh="monthly") as s:
        assert s.data_version == 2
    with kept.reopened(table(10)) as s:
        assert s.data_version == 2


def test_other_units_are_refused_as_it_is_opened_too(kept):
    with kept.session(cp.PureDP(10**6), source=table(10)):
        pass
    with pytest.raises(NotCovered, match="the unit would be 'state'"):
        reopened(kept, table(10, unit="state"), refresh="why")
    with kept.reopened(table(10)) as s:
        assert s.data_version == 1


def test_the_rows_of_every_version_belong_to_the_budget(kept):
    """A new session with a version's rows, or a version with another session's rows, would be a second budget."""
    with kept.session(cp.PureDP(1), source=table(10)) as s:
        s.refresh(table(20))
        for rows in (10, 20):
            with pytest.raises(DataInUse):
                kept.session(cp.PureDP(1), source=table(rows), name="again")
        with kept.session(cp.PureDP(1), source=table(30), name="other"):
            history = s.history
            with pytest.raises(DataInUse):
                s.refresh(table(30))
            assert s.history == history
            s.refresh(table(30), second_budget=True)
        assert "the custodian insisted" in s.history[-2].what
        assert "'other'" in str(s.certificate())


def test_data_without_a_key_cannot_be_recognised_and_are_no_version_of_a_durable_session(kept):
    with (
        kept.session(cp.PureDP(1), source=table(10)) as s,
        pytest.raises(DataChanged, match="must know its data again"),
    ):
        s.refresh(table(20, key=None))


def test_what_a_crash_left_open_is_finished_on_the_version_that_it_was_begun_on(kept):
    class Crash(Exception):
        pass

    def crash(point):
        if point == "write" and armed:
            raise Crash

    armed = []
    ledger = kept.ledger(reached=crash)
    s = cp.Session(table(10), within=cp.PureDP(10**6), ledger=ledger)
    resolve = cp.Table.resolve
    s.refresh(table(20), keep=True)

    def failing(self, *args):
        armed.append(True)
        return resolve(self, *args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cp.Table, "resolve", failing)
        with pytest.raises(Crash):
            s.ask(cp.count(), epsilon=SURE, id="open")
    armed.clear()
    s.close()
    with reopened(kept, table(30), refresh="May", earlier=[table(20)]) as s:
        assert sure(s, id="open") == 20
        assert sure(s) == 30
        s._engine.ledger.verify()


@pytest.mark.parametrize("point", ["write", "commit", "committed"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_crash_in_a_refresh_leaves_one_version_or_the_other(kept, point, nth):
    class Crash(Exception):
        pass

    left = [10**9]

    def crash(reached):
        left[0] -= reached == point
        if left[0] == 0:
            raise Crash

    s = cp.Session(table(10), within=cp.PureDP(10**6), ledger=kept.ledger(reached=crash))
    sure(s)
    left[0] = nth
    with pytest.raises(Crash):
        s.refresh(table(20))
    s.close()
    for source, number in ((table(10), 1), (table(20), 2)):
        try:
            s = kept.reopened(source)
        except DataChanged:
            continue
        with s:
            assert s.data_version == number
            s.refresh(table(30))
            assert (sure(s), s.loss.epsilon) == (30, 2 * SURE)
            s._engine.ledger.verify()
        return
    raise AssertionError("neither version opens")


def test_after_a_part_of_the_record_was_lost_nothing_is_refreshed(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(1), source=table(10)) as s:
        s.launch(cp.Laplace("0.1"))
    old = (tmp_path / "ledger.db").read_bytes()
    with place.reopened(table(10)) as s:
        s.refresh(table(20))
        sure_enough = s.launch(cp.Laplace("0.1")).ask(cp.count(), id="seen")
        assert sure_enough is not None
    (tmp_path / "ledger.db").write_bytes(old)
    for rest in tmp_path.glob("ledger.db-*"):
        rest.unlink()
    recover(place.durable, "session", by="olga")
    with place.reopened(table(10)) as s:
        with pytest.raises(NotAllowed, match="not refreshed"):
            s.refresh(table(30))
        s._engine.ledger.verify()


# ------------------------------------------------------------------------------------------------- on record, checked


@pytest.fixture
def refreshed(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(10), source=table(10)) as s:
        s.launch(cp.Laplace(1, asks=2), id="one").ask(cp.count(), id="old")
        parts = s.partition("state", within=cp.PureDP("0.5"))
        s.refresh(table(20), keep=True, note="a note")
        s.ask(cp.count(), epsilon=1, id="new")
        s.at((0,)).ask(cp.count(), id="older")
        parts["CA"].ask(cp.count(), epsilon="0.1", id="part")
        given = [(s, "new"), (s, "old"), (s, "older"), (parts["CA"], "part")]
        receipts = [one.receipt(id)[0]._asdict() for one, id in given]
        record, signer = s.record(), s._engine.ledger._signer
    return place, record, receipts, signer


def test_each_receipt_says_its_version_and_the_checker_agrees(refreshed):
    _, record, receipts, signer = refreshed
    assert "4 receipts hold" in checker.check(iter(record), receipts, signer.public)
    said = [checker._read(one["receipt"], "it")["data_version"] for one in receipts]
    assert said == [2, 1, 1, 1]


@pytest.mark.parametrize("number", range(4))
def test_a_receipt_about_another_version_is_not_that_of_the_record(refreshed, number):
    _, record, receipts, signer = refreshed
    text = (
        receipts[number]["receipt"].replace('"data_version":2', '"data_version":7').replace('version":1', 'version":2')
    )
    forged = {"receipt": text, "signature": signer.signature(text)}
    with pytest.raises(checker.DoesNotHold, match="version of the data"):
        checker.check(iter(record), [forged], signer.public)


def edit(kind, old, new):
    def edited(entries):
        return [replace(one, body=one.body.replace(old, new)) if one.kind == kind else one for one in entries]

    return edited


def without(kind):
    def edited(entries):
        gone = {one.request for one in entries if one.kind == kind}
        return [one for one in entries if one.request not in gone or not one.request]

    return edited


FORGED = {
    "numbered one after the other": edit("version", '["version",[],2', '["version",[],3'),
    "another version of the data": edit("question", ",2]", "]"),
    "another version of the data than": without("version"),
}


@pytest.mark.parametrize("reason", FORGED)
def test_a_record_that_tells_of_other_versions_is_found_out(refreshed, reason):
    place = refreshed[0]
    forge(place, FORGED[reason])
    with closing(place.ledger()) as ledger, pytest.raises(LedgerTampered, match=reason.removesuffix(" than")):
        ledger.verify()


def test_the_checker_of_one_file_finds_them_out_too(refreshed):
    from tests.ledger.test_receipts import retold

    _, record, _, _ = refreshed

    def said(change):
        return lambda entries: [[*one[:5], change(one), *one[6:]] for one in entries]

    unnumbered = said(
        lambda one: one[5].replace('["version",[],2', '["version",[],3') if one[1] == "version" else one[5]
    )
    with pytest.raises(checker.DoesNotHold, match="numbered one after the other"):
        checker.check(iter(retold(record, unnumbered)))
    of_another = said(lambda one: one[5].replace(",2]", "]") if one[1] == "question" else one[5])
    with pytest.raises(checker.DoesNotHold, match="another version of the data"):
        checker.check(iter(retold(record, of_another)))


def test_a_row_that_says_another_version_is_found_out(refreshed):
    """Which rows a mechanism reads would change with it."""
    place = refreshed[0]
    as_text, *other = "CAST(public_row AS TEXT)", '"sees":1', '"sees":2'
    place.sql(
        f"UPDATE counterpoint_row SET public_row = CAST(REPLACE({as_text}, ?, ?) AS BLOB) WHERE path = '[0]'", *other
    )
    with pytest.raises(LedgerTampered):
        place.reopened(table(20))


# ------------------------------------------------------------------------------------------------------ interleavings


class Versions(RuleBasedStateMachine):
    """Launches, asks, questions, refusals, refreshes and reopenings in any order, beside what must come of them."""

    def __init__(self):
        super().__init__()
        self.place, self.spent, self.number = Place("sqlite"), 0, 1
        self.readable, self.handles, self.told = {1}, {}, {}

    @initialize()
    def begin(self):
        self.session = self.place.session(cp.PureDP(20 * SURE), source=self.rows(1))

    def rows(self, number):
        return table(10 * number, cap=1 + number % 3, high=100 + number)

    @rule()
    def launch(self):
        try:
            handle = self.session.launch(cp.Laplace(2 * SURE, asks=2))
        except cp.BudgetExceeded:
            assert self.spent + 2 * SURE > 20 * SURE
            return
        self.spent += 2 * SURE
        self.handles[handle.path] = [self.number, 2]

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def ask(self, data):
        path = data.draw(st.sampled_from(sorted(self.handles)))
        (version, left), handle = self.handles[path], self.session.at(path)
        assert handle.data_version == version
        if not left:
            with pytest.raises(cp.errors.Halted):
                handle.ask(cp.count())
        elif version not in self.readable:
            with pytest.raises(DataReplaced):
                handle.ask(cp.count())
        else:
            assert handle.ask(cp.count()) == 10 * version
            self.handles[path][1] -= 1

    @rule(id=st.sampled_from("abcd"))
    def question(self, id):
        try:
            answer = int(self.session.ask(cp.count(), epsilon=SURE, id=id))
        except cp.BudgetExceeded:
            assert self.spent + SURE > 20 * SURE and id not in self.told
            return
        if id not in self.told:
            self.spent += SURE
            self.told[id] = 10 * self.number
        assert answer == self.told[id]

    @rule(keep=st.booleans())
    def refresh(self, keep):
        self.session.refresh(self.rows(self.number + 1), keep=keep)
        self.readable -= set() if keep else {self.number}
        self.number += 1
        self.readable.add(self.number)

    @rule(refresh=st.booleans(), kept=st.booleans())
    def reopen(self, refresh, kept):
        self.session.close()
        earlier = [self.rows(version) for version in sorted(self.readable - {self.number})] if kept else []
        self.readable = self.readable if kept else {self.number}
        source, why = self.rows(self.number + refresh), "why" if refresh else None
        if refresh:
            self.readable.discard(self.number)
            self.number += 1
            self.readable.add(self.number)
        self.session = reopened(self.place, source, refresh=why, earlier=earlier)

    @invariant()
    def the_account_is_what_was_charged(self):
        if hasattr(self, "session"):
            assert self.session.loss.epsilon == self.spent
            assert self.session.data_version == self.number

    def teardown(self):
        if hasattr(self, "session"):
            self.session._engine.ledger.verify()
            checker.check(iter(self.session.record()))
            self.session.close()


TestVersions = Versions.TestCase
TestVersions.settings = settings(
    max_examples=12, stateful_step_count=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)

"""Versions of a stream and of a live table: one log, which each version of the declaration reads as its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import DURABLE, Place
from tests.session.deeds import lines
from tests.session.test_stream_parts import Steady

import counterpoint as cp
from counterpoint import checker
from counterpoint.errors import DataChanged, DataInUse, InvalidRequest, NotCovered, RequestConflict
from counterpoint.privacy.secret import reveal

SURE = 1000
"""At this epsilon the noise of a count is 0 but for one in e^1000."""
FIRST = {"page": cp.category(["home"]), "clicks": cp.number(0, 10)}
SECOND = {
    "page": cp.category(["home", "shop"]),
    "clicks": cp.number(0, 100),
    "vip": cp.boolean(),
}


def stream(fields=FIRST, **options):
    return cp.Stream(fields=fields, **options)


def live(columns=FIRST, **options):
    return cp.LiveTable(unit="person", rows_per_unit=2, key="row", columns=columns, updates_per_unit=9, **options)


@pytest.fixture(params=["memory", *DURABLE])
def place(request, tmp_path):
    return Place(request.param, tmp_path)


def sure(session, asked):
    return int(session.ask(asked, epsilon=SURE))


def test_a_stream_gains_fields_keys_and_bounds_and_earlier_items_lack_them(place):
    first, second = stream(), stream(SECOND)
    with place.session(cp.PureDP(10**6), source=first) as s:
        first.extend([{"page": "home", "clicks": 50}, {"page": "shop", "clicks": 5}], id="monday")
        assert sure(s, cp.sum("clicks")) == 15
        before = s.loss
        assert s.refresh(second, note="a new site").number == 2
        assert (s.loss, s.data_version) == (before, 2)
        second.append({"page": "shop", "clicks": 50, "vip": True})
        first.append({"page": "home", "clicks": 3})
        assert sure(s, cp.sum("clicks")) == 10 + 5 + 50 + 3
        assert [int(s.ask(cp.count(where=f"page = {one!r}"), epsilon=SURE)) for one in ("home", "shop")] == [2, 1]
        assert sure(s, cp.count(where="vip")) == 1
        second.extend([{"page": "home", "clicks": 10}, {"page": "other", "clicks": 5}], id="monday")  # a late retry
        assert second.pin() == first.pin() == 4
        with pytest.raises(RequestConflict):
            second.extend([{"page": "home", "clicks": 9}, {"page": "other", "clicks": 5}], id="monday")
        s._engine.ledger.verify()


def test_a_counter_keeps_the_bounds_that_its_noise_was_chosen_for(place):
    """Items of the next version reach it clamped to those of its own."""
    first, second = stream(), stream(SECOND)
    with place.session(cp.PureDP(10**9), source=first) as s:
        counter = s.launch(cp.Counter(10**5), of="clicks")
        parts = s.partition("page", within=cp.PureDP(10**5))
        in_home = parts["home"].launch(cp.Counter(10**5))
        elsewhere = s.launch(cp.Laplace(10**5, asks=1))
        s.refresh(second)
        second.extend([{"page": "shop", "clicks": 100, "vip": True}, {"page": "home", "clicks": 7}])
        assert (counter.ask(), in_home.ask()) == (17, 1)
        assert (counter.data_version, parts["home"].data_version) == (1, 1)
        assert elsewhere.ask(cp.count(where="NOT page = 'home'")) == 0, "a page that it does not declare is missing"
        later = s.launch(cp.Counter(10**5), of="clicks")
        second.append({"clicks": 100})
        assert (counter.ask(), later.ask()) == (27, 100)
        with pytest.raises(InvalidRequest, match="not a key"):
            parts["shop"]
        assert sure(s.partition("page", within=cp.PureDP(SURE), k=2)["shop"], cp.count()) == 1


def test_a_live_table_gains_columns_and_its_followers_keep_theirs(place):
    first, second = live(), live(SECOND)
    with place.session(cp.PureDP(10**9), source=first) as s:
        first.put({"person": "ann", "row": 1, "page": "home", "clicks": 4})
        follower = s.launch(cp.Counter(10**6), of=cp.sum("clicks"))
        s.refresh(second)
        second.put({"person": "ann", "row": 1, "page": "shop", "clicks": 90, "vip": True})
        second.put({"person": "bob", "row": 1, "page": "shop", "clicks": 2})
        assert sure(s, cp.sum("clicks")) == 92
        assert sure(s, cp.count(where="page = 'shop' AND vip")) == 1
        assert follower.ask() == 6 + 2
        first.remove(person="ann", row=1)
        assert sure(s, cp.sum("clicks")) == 2
        s._engine.ledger.verify()


def test_a_stream_of_numbers_has_wider_bounds_in_its_next_version(place):
    first, second = cp.Stream(bound=3), cp.Stream(bound=9)
    with place.session(cp.PureDP(10**9), source=first) as s:
        old = s.launch(cp.Counter(10**5))
        first.append(9)
        s.refresh(second)
        second.append(9)
        assert (old.ask(), sure(s, cp.total())) == (6, 12)


REFUSED = {
    "'clicks' would be gone": lambda: stream({"page": cp.category(["home"])}),
    "'page' would have another place": lambda: stream({"vip": cp.boolean(), **FIRST}),
    "'clicks' would be a text": lambda: stream({**FIRST, "clicks": cp.text()}),
    "in steps of 0.5, and what arrived is": lambda: stream({**FIRST, "clicks": cp.number(0, 10, step="0.5")}),
    "another form": lambda: cp.Stream(bound=9),
    "the unit would be 'person'": lambda: stream(unit="person", per_unit=2),
    "neighbours would be declared by 'add-or-remove'": lambda: stream(neighbours="add-or-remove"),
    "a row would be one of a live table": live,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_could_not_read_the_log_is_refused_with_the_reason(reason):
    with cp.Session(stream(), within=cp.PureDP(10**6)) as s:
        history = s.history
        with pytest.raises(NotCovered, match=reason):
            s.refresh(REFUSED[reason]())
        assert (s.history, s.data_version) == (history, 1)


def test_rows_of_a_live_table_keep_the_key_that_names_them():
    with cp.Session(live(), within=cp.PureDP(1)) as s, pytest.raises(NotCovered, match="named by 'number'"):
        s.refresh(cp.LiveTable("person", 2, key="number", columns=FIRST, updates_per_unit=9))


def test_streams_among_several_sources_are_refused():
    def both():
        return cp.Sources(visits=stream(unit="person", per_unit=3), unit="person")

    with cp.Session(both(), within=cp.PureDP(1)) as s, pytest.raises(NotCovered, match="in one order"):
        s.refresh(both())


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


def test_after_a_restart_each_version_reads_the_log_again(kept):
    first = stream()
    with kept.session(cp.PureDP(10**9), source=first) as s:
        counter = s.launch(cp.Counter(10**5), of="clicks")
        first.append({"page": "home", "clicks": 10})
    with pytest.raises(DataChanged, match='refresh="why"'):
        kept.reopened(stream(SECOND))
    second = stream(SECOND)
    with reopened(kept, second, refresh="a new site") as s:
        assert s.data_version == 2
        second.append({"page": "shop", "clicks": 100})
        assert s.at(counter.path).ask() == 20
        assert sure(s, cp.sum("clicks")) == 110
    third = stream({**SECOND, "note": cp.text()})
    with kept.session(cp.PureDP(10**9), source=stream(SECOND)) as s:
        s.refresh(third)
        third.append({"clicks": 100, "note": "?"})
        assert s.at(counter.path).ask() == 30
        s._engine.ledger.verify()
    with pytest.raises(DataChanged):
        kept.reopened(stream(SECOND))


def test_another_process_that_has_the_version_before_reads_later_items_as_its_own(tmp_path):
    """A worker with an earlier declaration must not give its counters values beyond their bounds."""
    place, first, second = Place("postgres", tmp_path), stream(), stream(SECOND)
    with place.session(cp.PureDP(10**9), source=first) as one, place.session(cp.PureDP(10**9), source=stream()) as two:
        counter = one.launch(cp.Counter(10**5), of="clicks")
        two.refresh(second)
        second.append({"page": "shop", "clicks": 100, "vip": True})
        assert counter.ask() == 10


def test_a_stream_of_another_session_does_not_become_a_version(kept):
    mine, other = stream(), stream()
    with kept.session(cp.PureDP(1), source=mine) as s, kept.session(cp.PureDP(1), source=other, name="other"):
        history = s.history
        with pytest.raises(DataInUse):
            s.refresh(other)
        assert s.history == history


def test_versions_of_a_stream_are_on_record_and_checked(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(10**6), source=stream()) as s:
        s.ask(cp.count(), epsilon=1, id="one")
        s.refresh(stream(SECOND), note="a new site")
        s.ask(cp.count(), epsilon=1, id="two")
        seen = [checker._read(s.receipt(id)[0].receipt, "it")["data_version"] for id in ("one", "two")]
        assert seen == [1, 2]
        assert "vip" in s.versions[1].words and "vip" not in s.versions[0].words
        receipts = [s.receipt(id)[0]._asdict() for id in ("one", "two")]
        assert "2 receipts hold" in checker.check(iter(s.record()), receipts, s._engine.ledger._signer.public)


pages = st.sampled_from(["home", "shop", "help"])
records = st.none() | st.fixed_dictionaries(
    {"page": pages, "clicks": st.integers(0, 300)}, optional={"vip": st.booleans()}
)
deeds = st.lists(st.sampled_from(["old", "new", "count", "sum", "refresh", "append"]), min_size=3, max_size=12)


@settings(max_examples=40)
@given(st.lists(records, min_size=1, max_size=5), records, st.integers(0, 4), deeds)
def test_on_neighbouring_streams_with_equal_coins_everything_public_is_the_same(left, other, place, doings):
    """One item differs, in all versions: errors, history, versions and losses do not, nor do the moves of a counter."""
    right = list(left)
    right[place % len(left)] = other

    def drive(items):
        sources, number, seen = [stream()], len(items) // 2, []
        s = cp.Session(sources[0], cp.PureDP(5), ledger=Steady())
        counter = s.launch(cp.Counter("0.5"), of="clicks")
        for item in items[: len(items) // 2]:
            sources[0].append(None if item is None else {name: item[name] for name in ("page", "clicks")})
        for deed in doings:
            try:
                if deed == "refresh":
                    sources.append(stream(SECOND))
                    s.refresh(sources[-1])
                elif deed == "append" and number < len(items) and len(sources) > 1:
                    sources[-1].append(items[number])
                    number += 1
                elif deed == "old":
                    counter.ask()
                elif deed == "new":
                    s.launch(cp.Counter("0.5"), of="clicks").ask()
                else:
                    s.ask(cp.count() if deed == "count" else cp.sum("clicks"), epsilon="0.1")
            except cp.CounterpointError as error:
                seen.append((type(error), str(error)))
            seen.append((s.loss, lines(s), [(one.number, one.declared) for one in s.versions], sources[-1].pin()))
        updates = s._engine.data.source(1).of("clicks").items(0, sources[-1].pin())
        return seen, [reveal(one.private) for one in updates]

    (seen, moved), (others, moved_too) = drive(left), drive(right)
    assert seen == others
    apart = [abs(one - two) for one, two in zip(moved, moved_too, strict=True)]
    assert sum(one > 0 for one in apart) <= 1
    assert max(apart, default=0) <= 10, "farther than the counter's noise hides"

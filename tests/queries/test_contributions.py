"""What one row adds to a request: its sum over rows is the request's answer, and it moves by no more than it says."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import people

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import reveal
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries.contributions import contribution
from counterpoint.schema.expressions.evaluate import evaluator
from counterpoint.schema.expressions.tree import BeforePin, MaxLength, NotEnded
from counterpoint.sources.streams.stream import Stream

FIELDS = {"who": cp.number(0, 99), "age": cp.number(-(2**31), 2**31), **people.COLUMNS}
records = st.none() | people.rows.flatmap(
    lambda row: st.integers(0, 5).map(lambda who: {"who": who, **row}),
)
followable = people.questions.filter(lambda request: request.why_no_updates is None)


def stream_of(items, neighbours="replace", **user):
    stream = Stream(fields=FIELDS, neighbours=neighbours, **user)
    stream.extend(items)
    return stream


def read(stream, request):
    """What each item adds to a request, as a tuple."""
    raw = [reveal(update.private) for update in stream.of(request).items(0, stream.pin())]
    return [value if isinstance(value, tuple) else (value,) for value in raw]


def found(source, request, pin):
    raw = reveal(source.resolve(pin, source.prepare(request)))
    return raw if isinstance(raw, tuple) else (raw,)


def plus(left, right):
    return tuple(a + b for a, b in zip(left, right, strict=True))


@settings(max_examples=120, deadline=None)
@given(st.lists(records, max_size=10), followable, st.sampled_from([{}, {"unit": "who", "per_unit": 2}]), st.booleans())
def test_contributions_add_up_to_what_the_engine_answers_at_every_pin(items, request, user, cut):
    stream = stream_of(items, **user)
    part = stream.part("state", "CA") if cut else stream
    added = read(part, request)
    zero = (0,) * len(found(part, request, 0))
    for pin, total in enumerate(accumulate(added, plus, initial=zero)):
        assert total == found(part, request, pin), request
    assert found(part.of(request), cp.total(), stream.pin()) == total


CONDITIONS = [
    "income <= 1",
    "income >= 0",
    "income BETWEEN -1 AND 1",
    "income = 0",
    "income <> 0",
    "income IN (0, 3)",
    "income NOT BETWEEN 1 AND 2",
    "state = 'CA'",
    "state <> 'CA'",
    "zip LIKE '%'",
    "zip NOT LIKE '1%'",
    "zip IS NULL",
    "vip",
    "vip = FALSE",
    "born < '2000-01-01'",
    "income >= 0 AND NOT vip",
    "income >= 0 OR state = 'NY'",
]


@pytest.fixture(scope="module")
def mixed():
    """Records with and without each value."""
    return stream_of(
        [
            {},
            {"income": 0, "state": "CA", "zip": "10", "vip": True, "born": "1995-01-01"},
            {"income": 0},
            {"income": 1.5, "vip": False, "zip": ""},
            {"state": "NY", "zip": "2"},
            {"born": "2005-05-05", "vip": True},
        ]
    )


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_missing_value_satisfies_no_comparison_in_python_as_in_the_engine(mixed, where):
    for condition in (where, f"NOT ({where})"):
        added = [value for (value,) in read(mixed, requests.count(condition))]
        for pin in range(mixed.pin() + 1):
            assert sum(added[:pin]) == found(mixed, requests.count(condition), pin)[0]


@settings(max_examples=120, deadline=None)
@given(records, records, followable, st.sampled_from(["replace", "add-or-remove"]))
def test_the_contribution_of_an_item_moves_by_at_most_what_the_relation_says(one, other, request, neighbours):
    left, right = (stream_of([item], neighbours) for item in (one, other if neighbours == "replace" else None))
    relation = left.of(request).relation
    l1, squared, each = people.moved(*(read(stream, request)[0] for stream in (left, right)))
    adds = contribution(request, left.declaration)
    assert relation == right.of(request).relation == Steps(updates=1, bound=adds.l1, squared=adds.squared)
    assert l1 <= adds.l1 and squared <= adds.squared and each <= adds.each


@pytest.mark.parametrize("neighbours", ["replace", "add-or-remove"])
@pytest.mark.parametrize(
    ("request_", "far"),
    [
        (requests.count("vip"), ({"vip": True}, None)),
        (requests.sum("income"), ({"income": -2}, {"income": 3})),
        (
            requests.sum("income", by="state"),
            [{"income": income, "state": state} for income in (-2, 3) for state in ("CA", "NY")],
        ),
        (
            requests.sum("income", by=["state", "vip"]),
            [{"income": income, "state": "CA", "vip": vip} for income in (-2, 3) for vip in (True, False)],
        ),
        (requests.histogram("state"), ({"state": "CA"}, {"state": "NY"})),
        (requests.count(by=["state", "vip"]), [{"state": "CA", "vip": vip} for vip in (True, False)]),
        (requests.histogram("income", edges=[-2, 0, 3]), ({"income": -1}, {"income": 1})),
        (requests.ranks("income", [0, 1, 2]), ({"income": -2}, {"income": 3})),
    ],
)
def test_every_kind_of_request_reaches_its_bound(request_, far, neighbours):
    pairs = [(one, other) for one in far for other in (*(far if neighbours == "replace" else ()), None)]
    adds = contribution(request_, stream_of([], neighbours).declaration)
    reached = [people.moved(*(read(stream_of([item], neighbours), request_)[0] for item in pair)) for pair in pairs]
    assert tuple(map(max, zip(*reached, strict=True))) == (adds.l1, adds.squared, adds.each)


texts = st.text(st.sampled_from(["a", "b", "%", "_", "é", "😀", "\n", ".", "$", "'"]), max_size=6)


@settings(max_examples=120, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), texts, st.booleans())
def test_like_means_the_same_in_python_and_in_the_engine(notes, pattern, negated):
    stream = Stream(fields={"note": cp.text()})
    stream.extend([{"note": note} for note in [*notes, None]])
    quoted = pattern.replace("'", "''")
    request = requests.count(f"note {'NOT ' if negated else ''}LIKE '{quoted}'")
    assert sum(value for (value,) in read(stream, request)) == found(stream, request, stream.pin())[0]


def test_a_text_is_as_short_as_the_engine_says():
    assert [evaluator(MaxLength(0, 2))((text,)) for text in ("ab", "é😀", "abc", None)] == [True, True, False, None]


def test_whether_a_row_has_arrived_is_not_read_off_its_values():
    with pytest.raises(TypeError):
        evaluator(BeforePin(0))
    with pytest.raises(TypeError):
        evaluator(NotEnded(0))


@pytest.mark.parametrize(
    ("request_", "instead"),
    [
        (requests.mean("income"), r"follow sum\('income'\) and count"),
        (requests.count_distinct(), "a unit counts once"),
        (choices.quantile("income", 0.5, [0, 1]), "follow ranks"),
        (choices.keys("zip"), "not a sum"),
    ],
)
def test_a_request_that_is_no_sum_over_rows_is_refused_and_says_what_works(request_, instead):
    with pytest.raises(InvalidRequest, match=f"{instead}.*Mechanisms follow count, sum, histogram and ranks"):
        stream_of([]).of(request_)


def test_requests_are_followed_on_records_and_by_their_own_classes_alone():
    with pytest.raises(InvalidRequest, match="declare a stream of records"):
        Stream(bound=3).of(requests.count())
    with pytest.raises(InvalidRequest, match="no column 'nothing'"):
        stream_of([]).of(requests.count("nothing = 3"))
    with pytest.raises(InvalidRequest, match="must be a name"):
        cp.total(requests.count())
    other = type("Count", (), {"where": None, "why_no_updates": None})()
    with pytest.raises(InvalidRequest, match="must be a name"):
        stream_of([]).of(other)
    with pytest.raises(InvalidRequest, match="on the original stream"):
        stream_of([]).of(requests.count()).of(requests.count())


def test_requests_that_differ_in_the_type_of_a_key_are_two():
    """As values, 1 and True are equal: a cache by values would read one request for the other."""
    stream = Stream(fields={"n": cp.number(0, 9), "yes": cp.boolean()})
    stream.extend([{"n": 1, "yes": True}, {"n": 0, "yes": True}])
    for request, counts in ((requests.histogram("yes", keys=[True]), (2,)), (requests.histogram("n", keys=[1]), (1,))):
        assert found(stream.of(request), cp.total(), 2) == counts
    with pytest.raises(InvalidRequest):
        stream.of(requests.histogram("n", keys=[True]))

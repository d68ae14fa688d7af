"""Followers on neighbouring streams under equal coins: public behaviour is equal, contributions are within bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.deeds import lines
from tests.session.test_stream_parts import Steady

import counterpoint as cp
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import reveal
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.verdict import Verdict

PAGES = ["home", "shop"]
FIELDS = {"page": cp.category(PAGES), "seconds": cp.number(-10, 20, step=5), "note": cp.text()}
FOLLOWED = [
    cp.count(),
    cp.count(where="page = 'home' AND seconds >= 5"),
    cp.count(where="NOT (note LIKE 'a%') OR seconds IS NULL"),
    cp.sum("seconds"),
    cp.sum("seconds", where="note = 'a'"),
    cp.histogram("page", where="seconds <> 0"),
    cp.sum("seconds", by="page"),
    cp.histogram("seconds", edges=[-10, 0, 20]),
    cp.ranks("seconds", [0, 10]),
]
records = st.none() | st.fixed_dictionaries(
    {
        "page": st.sampled_from([*PAGES, "elsewhere", None]),
        "seconds": st.sampled_from([-99, -10, 0, 5, 20, None, float("nan")]),
        "note": st.sampled_from(["a", "b", None]),
    }
)
places = st.sampled_from(["all", "inside", *PAGES])
doings = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), places, st.tuples(st.sampled_from(FOLLOWED), st.sampled_from([None, 1, 3]))),
        st.tuples(st.just("ask"), places, st.none()),
        st.tuples(st.just("arrive"), places, st.integers(0, 3)),
    ),
    max_size=25,
)


def drive(items, options, doings):
    """Everything public about what happened, the answers by place, and what each follower read."""
    stream = cp.Stream(fields=FIELDS, **options)
    session = cp.Session(stream, within=cp.PureDP(5), ledger=Steady())
    inside, k = session.delegate(cp.PureDP(1)), stream.reach("page")
    parts = session.partition("page", k=k, within=cp.PureDP("0.5"))
    handles, seen, answers, read, arriving = {}, [], [], [], iter(items)
    for deed, place, what in doings:
        try:
            here = {"all": session, "inside": inside}.get(place) or parts[place]
            if deed == "launch":
                request, last = what
                handles[place] = here.launch(cp.Counter("0.01", window=last), of=request)
            elif deed == "ask":
                handle = handles[place]
                answers.append((place, handle.mechanism.claim.relation, handle.ask()))
            else:
                stream.extend([item for item, _ in zip(arriving, range(what), strict=False)])
        except (KeyError, cp.CounterpointError) as error:
            seen.append((type(error), str(error)))
        seen.append((session.loss, lines(session), repr(session), stream.pin(), repr(list(handles.values()))))
        for handle in handles.values():
            read.append((handle._source.relation, handle._source.items(0, stream.pin())))
    return seen, answers, read


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(records, st.sampled_from(["ann", "bob"])), min_size=1, max_size=8),
    st.data(),
    st.sampled_from(["replace", "add-or-remove"]),
    st.booleans(),
    doings,
)
def test_on_neighbouring_streams_followers_differ_within_their_relation_alone(items, data, neighbours, user, doings):
    """At event level one item changes or is gone; at user level all items of a unit, in their places."""
    gone = neighbours == "add-or-remove" or data.draw(st.booleans(), "whether it is gone")
    place = data.draw(st.integers(0, len(items) - 1))
    changes = [who == "ann" if user else n == place for n, (_, who) in enumerate(items)]
    other = [
        (None if gone else data.draw(records), who) if change else (item, who)
        for change, (item, who) in zip(changes, items, strict=True)
    ]
    if user:  # an owner without a record is none, in both worlds or where the unit is gone
        blank = {"page": None}
        left, right = ([{**(item or blank), "who": who} for item, who in world] for world in (items, other))
        right = [None if gone and change else item for item, change in zip(right, changes, strict=True)]
    else:
        left, right = ([item for item, _ in world] for world in (items, other))
    options = {"neighbours": neighbours, **({"unit": "who", "per_unit": 2} if user else {})}
    seen, here, read = drive(left, options, doings)
    again, there, also = drive(right, options, doings)
    assert seen == again
    for (relation, one), (same, two) in zip(read, also, strict=True):
        assert relation == same and relation.valid(zip(one, two, strict=True)), "at every moment"
    differing = {one[0] for one, two in zip(here, there, strict=True) if one != two and one[0] in PAGES}
    assert len(differing) <= cp.Stream(fields=FIELDS, **options).reach("page")
    for (_, relation, one), (_, _, two) in zip(here, there, strict=True):
        assert moved(one, two) <= relation.updates * far(relation) * 5, "the noise is the same: only the count moves"


def far(relation):
    """How far one update moves in L1 at most."""
    return relation.bound if relation.bound is not None else relation.squared


def moved(one, two):
    pairs = zip(one, two, strict=True) if isinstance(one, tuple) else [(one, two)]
    return sum(abs(a - b) for a, b in pairs)


def test_a_followed_request_keeps_its_claim_against_every_adversary_and_a_wrong_bound_does_not():
    """The adversary chooses between records; what the counter receives of them is what they add to the request."""
    stream = cp.Stream(fields=FIELDS)
    items = [{"page": "home", "seconds": 20}, {"page": "home", "seconds": -10}, {"page": "shop", "seconds": 20}, None]
    stream.extend(items)
    following = stream.of(cp.sum("seconds", where="page = 'home'"))
    added = [reveal(update.private) for update in following.items(0, len(items))]
    assert added == [4, -2, 0, 0]
    pairs = [(Update(one), Update(other)) for one in {*added} for other in {*added} if one != other]
    fitted = cp.Counter(3, horizon=2).fitted(following.relation, None)
    verdicts, relation = [], Steps(updates=1, bound=6)
    for counter in (fitted, cp.Counter(3, horizon=2, bound=3, clamp=False)):
        loss = exact(
            counter, relation, messages=[*pairs, (cp.mechanisms.Ask(), cp.mechanisms.Ask())], rounds=3, cut="1e-9"
        )
        verdicts.append(loss.judge(counter.claim.loss, allowance="1e-5"))
    assert fitted.bound == 6 and verdicts == [Verdict.HOLDS, Verdict.REFUTED]

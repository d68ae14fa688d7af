"""The exact form of what is said over the wire: nothing comes through that is not on the allow-list."""

import json
from fractions import Fraction

import pytest

import counterpoint as cp
from counterpoint.encoding import Tagged, Value, encode
from counterpoint.errors import InvalidRequest
from counterpoint.mechanisms.additive import Range
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.guess_and_check import Guess, LinearGuess
from counterpoint.mechanisms.noisy_max import Largest
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.queries.compile import LANGUAGE
from counterpoint.queries.request import OnSource
from counterpoint.wire.problems import error_of, problem
from counterpoint.wire.requests import (
    LONGEST_EXACT,
    check_size,
    decode_loss,
    decode_mechanism,
    decode_public,
    decode_request,
    encode_exactly,
    encode_public,
)

MECHANISMS = [
    cp.Laplace("1/3", asks=7),
    cp.Laplace(1, clamp=(0, "0.5")),
    cp.Gaussian(rho="0.01"),
    cp.Gaussian(epsilon=1, delta=1e-6),
    cp.Counter(epsilon=1, horizon=100),
    cp.NoisyMax(rho=1),
    cp.PartitionSelection(1, 1e-9),
    cp.mechanisms.GaussianSelection(1, 1e-9),
    cp.mechanisms.GaussianSelection(rho="0.1", delta=1e-9),
    cp.SparseVector(1, threshold="1/7", release="gap"),
    cp.AboveThreshold(1, threshold=10**30),
    cp.Counter(epsilon=1, width=3),
    cp.Counter(rho=1, per_unit=2, min_separation=3),
    cp.Counter(epsilon=1, window=10),
    cp.Counter(rho=1, per_unit=2, width=3, min_separation=3),
    cp.GuessAndCheck(1, margin="1/3", wrong=2),
    cp.GuessAndCheck.concentrated("0.1", margin=5),
    cp.LinearGuessAndCheck(cp.GuessAndCheck(1, margin=5), universe=3),
    cp.Sampled(cp.SparseVector(1, threshold=5), rate="0.01"),
    cp.Sampled(cp.Gaussian(rho="0.1"), rate="1/3", delta=1e-6),
]
REQUESTS = [
    cp.count("age > 35", by="state"),
    cp.count(),
    cp.count_distinct(by="state"),
    cp.sum("age"),
    cp.mean("age", of="people"),
    cp.stdev("age", by="state", keys=["CA"]),
    cp.histogram("age", edges=[0, Fraction(1, 3), 100]),
    cp.histogram("age", bins=20),
    cp.share("age > 35", "state = 'CA'"),
    cp.ranks("age", [1, 2]),
    cp.quantile("age", 0.1),
    cp.quantile("age", [0.1, "1/3"]),
    cp.minimum("age"),
    cp.bounds("age"),
    cp.top("state", 1),
    cp.keys(["state", "age"]),
    cp.select(n=cp.count(), age=cp.mean("age"), by=["state", "age"], keys=[("CA", 1), ("NY", 2)], of="people"),
    cp.total(["a", "b"]),
]
LOSSES = [cp.PureDP("1/3"), cp.ApproxDP(1, 1e-9), cp.zCDP("0.1"), cp.RenyiDP(2, 1), cp.tCDP(1, 2), cp.GaussianDP(1)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_mechanism_arrives_as_it_was_sent(mechanism):
    assert decode_mechanism(encode_exactly(mechanism, "mechanism")) == mechanism


def test_nothing_is_sampled_that_cannot_be_said_by_itself():
    dice = cp.Sampled(cp.mechanisms.Dice(6), rate="0.5")
    with pytest.raises(cp.errors.InvalidRequest, match="is not accepted here"):
        decode_mechanism({"exact": encode(dice).decode()})


@pytest.mark.parametrize("request_", REQUESTS, ids=repr)
def test_a_request_arrives_as_it_was_sent(request_):
    said = encode_exactly(request_, "request")
    check_size(said)
    assert encode(decode_request(said)) == encode(request_)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_loss_arrives_as_it_was_sent(loss):
    assert decode_loss(encode_exactly(loss, "measure")) == loss


def test_every_request_of_the_language_can_be_sent():
    sent = {type(one.request if isinstance(one, OnSource) else one) for one in REQUESTS}
    assert set(LANGUAGE) <= sent


PUBLIC_PARTS = [
    None,
    True,
    10**40,
    "text",
    (1, ("a", None)),
    Threshold("1/3"),
    Range(0, "2.5"),
    Largest(3),
    Guess(7, margin=1),
    LinearGuess((1, 0), 5),
    (Threshold(1), Largest(2)),
]


@pytest.mark.parametrize("public", PUBLIC_PARTS, ids=repr)
def test_a_public_part_arrives_as_it_was_sent(public):
    assert decode_public(encode_public(public)) == public


@pytest.mark.parametrize(
    "text",
    [
        "1.5",
        '{"type":"Threshold/1","at":5}',
        '{"type":"Threshold/1","at":"10/2"}',
        '{"a":1}',
        '{"type":"Laplace/1","epsilon":"1/10","asks":1}',
        '[{"type":"PureDP/1","epsilon":"1"}]',
        " 1",
        "",
        "[" * 50 + "]" * 50,
        '"' + "x" * 20_000 + '"',
        "NaN",
        "-0",
    ],
)
def test_nothing_else_comes_through_as_a_public_part(text):
    with pytest.raises(InvalidRequest):
        decode_public({"exact": text})
    with pytest.raises(InvalidRequest):
        decode_public({"threshold": 5})


LAPLACE = '{"type":"Laplace/1","epsilon":"1/10","asks":1}'
CONCURRENT = encode(Concurrent(cp.Filter(cp.PureDP(1)), cp.relations.Steps(updates=0))).decode()
SAID = [
    CONCURRENT,
    encode(cp.mechanisms.Dice(6)).decode(),
    encode(cp.Laplace(1).claim).decode(),
    '{"type":"Postprocessed/1","postprocessor":null,"mechanism":' + LAPLACE + "}",
    LAPLACE.replace("Laplace/1", "Laplace/2"),
    LAPLACE.replace("Laplace/1", "Laplace"),
    LAPLACE.replace('"1/10"', CONCURRENT),
    LAPLACE.replace('"1/10"', LAPLACE),
    LAPLACE.replace('"1/10"', '"0.1"'),
    LAPLACE.replace('"1/10"', "0.1"),
    LAPLACE.replace('"1/10"', '"2/20"'),
    LAPLACE.replace('"1/10"', '"-1/10"'),
    LAPLACE.replace('"1/10"', '"1/0"'),
    LAPLACE.replace('"1/10"', '"1e400000000"'),
    LAPLACE.replace('"1/10"', '"1/' + "9" * 9_000 + '"'),
    LAPLACE.replace('"1/10"', '"NaN"'),
    LAPLACE.replace('"asks":1', '"asks":' + "9" * 6_000),
    LAPLACE.replace('"asks":1', '"asks":1,"asks":2'),
    LAPLACE.replace('"asks":1', '"asks":1,"type":"Laplace/1"'),
    LAPLACE.replace('"asks":1', '"asks":1,"claim":{"type":"PureDP/1","epsilon":"0/1"}'),
    LAPLACE.replace('"asks":1', '"asks":1,"ask":50'),
    LAPLACE.replace('"asks":1', '"asks":true'),
    LAPLACE.replace('"asks":1', '"asks":1.0'),
    LAPLACE.replace(',"asks":1', ""),
    LAPLACE + " ",
    LAPLACE + LAPLACE,
    f"[{LAPLACE}]",
    "[" * 100_000 + "]" * 100_000,
    '{"type":"Laplace/1","epsilon":' * 50_000,
    encode(cp.PureDP(1)).decode(),
    encode(cp.count()).decode(),
    '{"type":["Laplace/1"],"epsilon":"1/10","asks":1}',
    '{"type":null}',
    "{}",
    "",
    "null",
    "1",
    "\ud800",
]


@pytest.mark.parametrize("text", SAID, ids=lambda text: ascii(text[:70]))
def test_nothing_else_comes_through_as_a_mechanism(text):
    with pytest.raises(InvalidRequest):
        decode_mechanism({"exact": text})


@pytest.mark.parametrize(
    "said",
    [{"exact": LAPLACE, "asks": 2}, {"exact": LAPLACE, "mechanism": "Laplace"}, {"exact": 1}, {"exact": [LAPLACE]}],
)
def test_the_exact_form_stands_alone(said):
    with pytest.raises(InvalidRequest, match="the only field"):
        decode_mechanism(said)


def test_what_stands_inside_a_request_is_a_request():
    inner = json.loads(encode(cp.count()))
    for other in (json.loads(CONCURRENT), json.loads(LAPLACE), json.loads(encode(cp.PureDP(1))), {"a": 1}):
        for made in (
            lambda one: {"type": "OnSource/1", "source": "a", "request": one},
            lambda one: {"type": "Select/1", "names_of_parts": ["n"], "requests": [one], "noise": None},
        ):
            good, bad = made(inner), made(other)
            decode_request({"exact": json.dumps(good, separators=(",", ":"))})
            with pytest.raises(InvalidRequest, match="is not accepted here"):
                decode_request({"exact": json.dumps(bad, separators=(",", ":"))})


def test_a_class_of_another_package_is_not_made_of_what_was_said():
    made = []

    class Intruder(Tagged, Value, frozen=True):
        def __post_init__(self):
            made.append(self)

    tag = json.loads(encode(Intruder()))["type"]
    made.clear()
    for text in (f'{{"type":{json.dumps(tag)}}}', LAPLACE.replace('"1/10"', f'{{"type":{json.dumps(tag)}}}')):
        with pytest.raises(InvalidRequest, match="is not accepted here"):
            decode_mechanism({"exact": text})
    assert not made


def test_what_is_not_on_the_list_is_not_sent():
    for mechanism in (
        cp.MonotoneHistogram(1, cp.continual.max_of),
        cp.mechanisms.Dice(6),
        "Laplace",
        None,
        cp.PureDP(1),
    ):
        with pytest.raises(cp.errors.NotAllowed, match="a service takes as mechanism one of AboveThreshold, Counter"):
            encode_exactly(mechanism, "mechanism")


def test_a_long_exact_form_is_read_and_a_longer_one_is_not():
    check_size({"exact": "x" * LONGEST_EXACT})
    with pytest.raises(InvalidRequest, match="at most"):
        check_size({"exact": "x" * (LONGEST_EXACT + 1)})
    with pytest.raises(InvalidRequest, match="at most"):
        check_size({"exact": "x" * LONGEST_EXACT, "other": 1})


def refusals():
    """Refusals by rules of every kind, with what they carry."""
    visits = cp.Stream(bound=1)
    for rule, mechanism in (
        (cp.Filter(cp.PureDP(1)), cp.Laplace(2)),
        (cp.Filter(cp.ApproxDP(1, 1e-6)), cp.Laplace(20)),
        (cp.Filter(cp.zCDP(1)), cp.Gaussian(rho=2)),
        (cp.Slots([cp.PureDP(1)]), cp.Laplace(2)),
    ):
        try:
            cp.Session(visits, rule=rule).launch(mechanism)
        except cp.CounterpointError as error:
            yield error
    try:
        cp.sql("SELECT age FROM people")
    except cp.CounterpointError as error:
        yield error
    yield from (
        cp.errors.Halted("no more"),
        cp.errors.RequestConflict("another"),
        cp.errors.NotGranted("revoked"),
        cp.errors.DataInUse("used"),
    )
    yield cp.BudgetExceeded("deltas", remaining=Fraction(1, 3))


def test_an_error_arrives_as_it_was_raised():
    errors = list(refusals())
    assert len(errors) == 10
    for error in errors:
        said = json.loads(json.dumps(problem(error)))
        again = error_of(said)
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_an_error_that_is_no_name_of_the_library_is_told_by_its_nearest_kind_or_its_status():
    class Odd(InvalidRequest):
        pass

    assert type(error_of(problem(Odd("x")))) is InvalidRequest
    for status, kind in (
        (401, cp.errors.NotAllowed),
        (429, cp.errors.NotAllowed),
        (400, InvalidRequest),
        (500, cp.errors.ServiceFailed),
    ):
        assert type(error_of({"type": "about:blank", "status": status, "detail": "x"})) is kind
    assert type(error_of({"type": "urn:counterpoint:Refusal", "status": 500})) is cp.errors.ServiceFailed

"""Packed vectors: any integers round-trip, in a length that says nothing, and nothing else gets at them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.continual.packed import Packed, added, as_integers, as_tuple, narrow, octets_for, roomy, weighted_sum
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, SecretLeak

integers = st.one_of(st.integers(-130, 130), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**100), 2**100))


@given(st.lists(integers, max_size=8), st.sampled_from([1, 2, 4, 8, 11]))
def test_integers_round_trip_and_equal_ones_have_equal_bytes(values, octets):
    packed = Packed(as_integers(values), octets)
    text = packed.__sealed__()
    back = Packed.__unsealed__(text)
    assert back.integers.tolist() == packed.integers.tolist() == values
    assert back.__sealed__() == text == Packed(np.array(values, dtype=object), octets).__sealed__()
    assert int(text.partition(":")[0]) >= octets


@given(st.lists(st.integers(-128, 127), min_size=3, max_size=3))
def test_the_length_depends_on_the_declared_width_alone(values):
    assert len(Packed(as_integers(values), 2).__sealed__()) == len(Packed(as_integers([0, 0, 0]), 2).__sealed__())


@given(st.lists(integers, min_size=1, max_size=5), st.integers(0, 70), st.sampled_from([1, 40]))
def test_roomy_integers_are_the_same_and_have_room(few, bits, times):
    values = few * times
    found = roomy(as_integers(values), bits)
    assert found.tolist() == values == roomy(np.array([values], dtype=object), bits)[0].tolist()
    assert found.dtype == object or all(abs(value) * 2**bits <= 2**62 for value in values)


@given(st.lists(integers, min_size=1, max_size=5), st.sampled_from([1, 40, 400]))
def test_integers_of_python_become_an_array_and_come_back_however_many_and_wide_they_are(few, times):
    values, narrow = few * times, all(-(2**63) <= value < 2**63 for value in few)
    found = as_integers(values)
    assert found.dtype == (np.int64 if narrow else object) and found.tolist() == values
    back = as_tuple(found)
    assert back == tuple(values) and {type(value) for value in back} == {int}


@pytest.mark.parametrize("low", [-(2**63), -30, 2**63 - 51])
def test_equal_integers_of_an_answer_are_one_object_where_few_differ(low):
    values = low + np.arange(1000) % 51
    answer = as_tuple(values)
    assert list(answer) == values.tolist() and len({id(value) for value in answer}) == 51
    assert as_tuple(values[:60].copy()) == answer[:60]


@given(st.lists(st.tuples(integers, integers), min_size=1, max_size=5), st.sampled_from([1, 40]))
def test_two_vectors_are_added_however_wide_they_are(pairs, times):
    one, other = ([pair[side] for pair in pairs * times] for side in (0, 1))
    expected = [a + b for a, b in zip(one, other, strict=True)]
    assert added(as_integers(one), as_integers(other)).tolist() == expected
    assert added(narrow(as_integers(one), 2), as_integers(other)).tolist() == expected


def test_a_sum_that_does_not_fit_into_64_bits_is_added_in_pythons_integers():
    high = np.array([2**62, 2**61])
    assert added(high, high).tolist() == [2**63, 2**62]
    assert added(np.array([2**62 - 1]), np.array([2**60])).tolist() == [2**62 - 1 + 2**60]
    assert added(np.array([2**63 - 1]), np.array([1])).tolist() == [2**63]


ends = st.sampled_from([-(2**15), 2**15 - 1, -1, 0, 1])
weights = st.one_of(st.sampled_from([-(2**24), 2**24, 2**12, 4095, -4095, 1, -1, 0, 2**27]), integers)


@given(
    st.lists(st.tuples(weights, st.lists(st.one_of(ends, integers), min_size=2, max_size=2)), min_size=1, max_size=40)
)
def test_a_weighted_sum_is_exact_however_large_weights_and_rows_are(pairs):
    factors, rows = [weight for weight, _ in pairs], [row for _, row in pairs]
    expected = [sum(weight * row[at] for weight, row in pairs) for at in (0, 1)]
    assert weighted_sum(factors, [narrow(as_integers(row), 2) for row in rows]).tolist() == expected
    assert weighted_sum(factors, [as_integers(row) for row in rows]).tolist() == expected


@pytest.mark.parametrize("weight", [1, -1, 4095, 4096, -4097, 2**24 - 1, -(2**24), 2**28 - 1, 2**40, 2**60])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 33])
def test_a_weighted_sum_of_rows_of_16_bits_is_exact_at_their_ends(weight, count):
    rows = [np.array([-(2**15), 2**15 - 1, 7], dtype=np.int16)] * count
    assert weighted_sum([weight] * count, rows).tolist() == [
        weight * count * value for value in (-(2**15), 2**15 - 1, 7)
    ]


def test_noise_of_a_scale_has_bytes_enough():
    for scale in (1, 10, 1000, 10**7, 10**16, 10**40):
        assert 200 * scale < 2 ** (8 * octets_for(scale) - 1)


@pytest.mark.parametrize(
    "act",
    [lambda p: p == 1, hash, pickle.dumps, lambda p: p.__getstate__(), encode],
    ids=["compare", "hash", "pickle", "state", "write in the open"],
)
def test_it_is_neither_compared_nor_copied_nor_written_in_the_open(act):
    with pytest.raises(SecretLeak):
        act(Packed(np.array([1])))
    assert repr(Packed(np.array([1]))) == "Packed(...)"


@pytest.mark.parametrize("text", ["", "8", "8:AAAA", "x:AAAA", "0:AAAA", "-1:AAAA", "8:!!", 5, None, ("8:",)])
def test_other_data_is_not_read_as_a_packed_vector(text):
    with pytest.raises(InvalidParameter):
        Packed.__unsealed__(text)


@given(st.lists(st.lists(integers, min_size=2, max_size=2), max_size=5), st.sampled_from([1, 2, 4, 8, 11]))
def test_vectors_that_are_joined_have_the_bytes_of_the_whole_and_come_apart_again(rows, octets):
    joined = Packed.joined([as_integers(row) for row in rows], octets)
    whole = Packed(as_integers([value for row in rows for value in row]), octets)
    assert joined.__sealed__() == whole.__sealed__() and len(joined) == len(whole)
    assert [row.tolist() for row in joined.rows(2)] == rows == [row.tolist() for row in whole.rows(2)]
    assert Packed.joined(joined.rows(2), octets).__sealed__() == whole.__sealed__(), "narrow as they are"
    narrower = Packed.joined([narrow(as_integers(row), 1) for row in rows], octets)
    assert narrower.__sealed__() == whole.__sealed__(), "narrower in memory"
    assert narrower.rest(2).__sealed__() == joined.rest(2).__sealed__() == whole.rest(2).__sealed__()
    assert joined.rest(2).integers.tolist() == [value for row in rows[1:] for value in row]

"""Several streams in one ledger: two processes that append to all of them at once agree on one order."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import counterpoint as cp

SURE = cp.PureDP(10**9)
ROUNDS = 12


def data():
    fields = {"n": cp.number(0, 9)}
    visits, calls = (cp.Stream(fields=fields, unit="who", per_unit=500) for _ in range(2))
    members = cp.LiveTable("who", 1, key="row", columns=fields, updates_per_unit=500)
    return visits, calls, members, cp.Sources(visits=visits, calls=calls, members=members, unit="who")


def append(number, visits, calls, members, _):
    """What one process does: other ids than the other's in the streams, the same ones in the live table."""
    for turn in range(ROUNDS):
        visits.extend([{"who": f"{number} {turn}", "n": 1}] * 3, id=f"{number} {turn}")
        calls.extend([{"who": "bob", "n": 1}] * 2)
        members.put({"who": turn, "row": 1, "n": 1}, id=f"turn {turn}")


def test_two_that_append_to_all_streams_at_once_see_the_same(postgres):
    one, other = data(), data()
    with postgres.session(SURE, source=one[3]) as s, postgres.session(SURE, source=other[3]) as t:
        counter = s.launch(cp.Counter(epsilon=10**8), of=cp.sum("n", of="members"))
        with ThreadPoolExecutor(2) as pool:
            for ended in [pool.submit(append, number, *which) for number, which in enumerate((one, other))]:
                ended.result()
        for which in (one, other):
            assert [source.pin() for source in which[:3]] == [6 * ROUNDS, 4 * ROUNDS, ROUNDS]
        assert [source.log.items for source in one[:3]] == [source.log.items for source in other[:3]]
        assert counter.ask() == ROUNDS == t.handles[0].ask()
    with closing(postgres.ledger()) as ledger:
        ledger.verify()

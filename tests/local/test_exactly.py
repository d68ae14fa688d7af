"""Tiny protocols, exactly: the users as one mechanism (`protocol.mechanism`) against every adaptive server.

The server is the adversary of `exact`: she sends any of the queries to any of the users, by what she has heard, and
chooses the neighbouring data, too; so one number is the worst over all servers and all neighbours.
"""

from itertools import product

import pytest

from counterpoint import PureDP
from counterpoint.local.cores import core_protocol
from counterpoint.local.peeling import Fewer
from counterpoint.local.properties import AtMost
from counterpoint.local.protocol import Protocol, Server
from counterpoint.local.responders import Among, Membership
from counterpoint.mechanisms import Ask, Launch
from counterpoint.privacy.relations import FirstMessage, first_pair_consistent
from counterpoint.verify.catalogue.rules import data, query
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.game import CreatedFirst
from counterpoint.verify.verdict import Verdict

SAME, MOVED = [(0, 0), (1, 1)], [(0, 1), (1, 0)]


class Anybody(Server):
    def start(self):
        return None

    def turn(self, own, answers, coins):
        raise AssertionError("the adversary is the server")


def against_all_servers(protocol, users, messages, rounds, cut="1e-9"):
    """The users are launched, and then get so many messages: data first, as only a first pair may differ."""
    user = protocol.admit(protocol.users.mechanisms[0])
    pairs = [(Ask(Launch(user)), Ask(Launch(user))), *messages]
    return exact(protocol.mechanism, CreatedFirst(protocol.neighbours, users), pairs, users + rounds, cut=cut)


@pytest.mark.parametrize("k, pairs", [(1, [*SAME, (0, 1)]), pytest.param(2, SAME + MOVED, marks=pytest.mark.long)])
def test_three_users_and_two_rounds_lose_exactly_what_is_claimed(k, pairs):
    """All neighbouring values of three users (with k = 1, the other direction is the other world), two queries."""
    neighbours = first_pair_consistent(k, FirstMessage())
    protocol = Protocol(Anybody(), [Membership(1, bits=1)] * 3, neighbours, AtMost(1))
    messages = [data(*pair, to=user) for user in range(3) for pair in pairs]
    messages += [query(said, to=user) for user in range(3) for said in (Among(1, (0, 1)), Among(1, (1,)))]
    low, high = against_all_servers(protocol, 3, messages, 3 + 2).epsilon_bounds(0)
    assert protocol.claim.loss.as_pure() == PureDP(k) and k - 1e-9 < low <= high < k + 1e-9


FEW, ALL = [(0, 0), (1, 1)], list(product((0, 1), repeat=2))


@pytest.mark.parametrize(
    "noise, rests, rounds",
    [
        ("narrow", FEW, 4),
        pytest.param("narrow", ALL, 5, marks=pytest.mark.long),
        pytest.param("wide", ALL, 5, marks=pytest.mark.long),
    ],
)
def test_the_core_protocol_on_four_vertices_is_within_its_claim(noise, rests, rounds):
    """Graphs that differ in the edge 0-1, which only these two users notice: the others answer alike in both worlds,
    whatever they are asked, so a server learns nothing of it from them. `rests` are the edges to the other two.
    """
    protocol = core_protocol(4, 12, noise=noise)
    messages = [
        pair
        for rest, (before, after) in product(rests, MOVED)
        for pair in (
            data((0, before, *rest), (0, after, *rest), to=0),
            data((before, 0, *rest), (after, 0, *rest), to=1),
        )
    ]
    for user, other in ((0, 1), (1, 0)):
        messages += [query(Fewer((other, 2, 3), than), to=user) for than in (1, 2)]
        messages.append(query(Fewer((other,), 1), to=user))
    loss = against_all_servers(protocol, 2, messages, rounds, cut="1e-6")
    claimed = protocol.claim.loss
    assert claimed.as_pure() == PureDP(12) and loss.judge(claimed, allowance="1e-4") is Verdict.HOLDS
    assert loss.epsilon_bounds("1e-3")[0] > (3.5 if noise == "wide" else 4.5), "and it loses something"

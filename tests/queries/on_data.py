"""A mechanism together with its data, so that `verify` can tell two data sets apart by all that is answered.

The adversary sends the numbers of requests, adaptively; each is resolved on the data and answered by the mechanism, as
in a session.
"""

from counterpoint import verify
from counterpoint.encoding import Value
from counterpoint.measures import Unbounded
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import every_step

_DATA = {}


class OnData(Mechanism, Value, frozen=True):
    """`mechanism`, asked the requests of `world` by their numbers."""

    mechanism: Mechanism
    world: int

    @property
    def claim(self):
        return claim(Unbounded(), every_step(), "no promise: two of these are compared")

    def accepts(self, message):
        return isinstance(message, Ask) and isinstance(message.public, int)

    def start(self, coins):
        return self.mechanism.start(coins)

    def step(self, state, message, coins):
        source, requests = _DATA[self.world]
        facts = source.prepare(requests[message.public])
        secret = source.resolve(source.pin(), facts)
        ask = Ask(None, secret, facts.sensitivity, facts.squared, each=facts.each, one_way=facts.one_way)
        return self.mechanism.step(state, ask, coins)


def distinguisher(mechanism, one, two, requests, rounds):
    """The exact loss between two data sets, over all adversaries that ask these requests."""
    _DATA[0], _DATA[1] = (one, requests), (two, requests)
    asks = [Ask(number) for number in range(len(requests))]
    try:
        return verify.distinguisher(OnData(mechanism, 0), OnData(mechanism, 1), asks, rounds)
    finally:
        _DATA.clear()

"""Exact laws of transcripts in two worlds, by the code that runs in production: for mechanisms that compare."""

from collections import defaultdict
from fractions import Fraction
from math import inf, log

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.privacy.messages import Ask

CUT = Fraction(1, 10**12)


class Exactly:
    """The law of a mechanism's transcripts in two worlds, by the very code that runs in production.

    For each transcript the distribution over hidden states (the belief) is kept. Tails of the noise are cut and
    dropped, at most CUT each time, so every probability is known up to CUT times one more than the number of rounds.
    """

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.coins = EnumeratedCoins(CUT)
        self.rows = {}

    def ask(self, value):
        one_way = getattr(self.mechanism, "monotone", False)
        return Ask(private=value, sensitivity=self.mechanism.moves, one_way=one_way)

    def start(self):
        return {state: float(p) for state, p in self.coins.law(self.mechanism.start)}

    def row(self, state, value):
        if (state, value) not in self.rows:
            law = self.coins.law(self.mechanism.step, state, self.ask(value))
            self.rows[state, value] = [(after, answer, float(p)) for (after, answer), p in law]
        return self.rows[state, value]

    def after(self, belief, value, heard):
        found = defaultdict(float)
        for state, p in belief.items():
            for after, answer, q in self.row(state, value) if state is not None else ():
                if answer == heard:
                    found[after] += p * q
        return found

    def loss(self, script):
        """Bounds on the log of the odds of one transcript: pairs of values, with the answers that are heard."""
        worlds = self.start(), self.start()
        for (left, right), answer in script:
            worlds = self.after(worlds[0], left, answer), self.after(worlds[1], right, answer)
        return bounds(*worlds, len(script))

    def worst(self, pairs, rounds, relation=None, answers=(False, True)):
        """The largest loss of any transcript of any adaptive adversary who sends these pairs, in the relation.

        A pure loss is the largest over all (pairs, answers) in turn: an adaptive adversary only chooses among them.
        """
        relation = relation or self.mechanism.claim.relation

        def search(left, right, progress, played):
            here = bounds(left, right, played)
            there = [
                search(self.after(left, a, answer), self.after(right, b, answer), moved, played + 1)
                for a, b in (pairs if played < rounds else ())
                if (moved := relation.check(progress, self.ask(a), self.ask(b))) is not None
                for answer in answers
                if any(state is not None for state in left)
            ]
            return max(low for low, _ in [here, *there]), max(high for _, high in [here, *there])

        return search(self.start(), self.start(), relation.begin(), 0)

    def rate(self, pairs, rounds, order, relation=None, answers=(False, True)):
        """The largest Renyi divergence of this order, over the order, that any adaptive adversary reaches: its rho.

        The sum of p^a q^(1-a) over transcripts is additive, so the best pair after each transcript is found by itself.
        """
        relation = relation or self.mechanism.claim.relation

        def search(left, right, progress, played):
            p, q = sum(left.values()), sum(right.values())
            if p == 0 or q == 0:
                return 0.0
            here = p**order * q ** (1 - order)
            if played == rounds or all(state is None for state in left):
                return here
            there = [
                sum(
                    search(self.after(left, a, answer), self.after(right, b, answer), moved, played + 1)
                    for answer in answers
                )
                for a, b in pairs
                if (moved := relation.check(progress, self.ask(a), self.ask(b))) is not None
            ]
            return max([here, *there])

        moment = search(self.start(), self.start(), relation.begin(), 0)
        return log(moment) / (order - 1) / order


def bounds(left, right, rounds):
    lost = float(CUT) * (rounds + 1)
    one, other = sum(left.values()), sum(right.values())
    if one == 0:
        return -inf, -inf  # nobody hears this in the left world, up to what was cut
    return log(one / (other + lost)), log((one + lost) / other) if other else inf


PAIRS = [(value, value + move) for value in (-4, 0, 1) for move in (-1, 0, 1)]
"""Messages below, at and above the threshold, moving either way: enough to come close to every bound."""


def misses_then_hits(mechanism, misses, hits):
    """The adversary who approaches the bound: misses that push tau above 0, then hits at 0, well below it.

    So many misses at a value say that tau exceeds it by about scale * ln(misses); this is chosen to be 2.5 scales.
    """
    value = -round((log(misses) - 2.5) * float(mechanism.scales[1]))
    return [((value, value + 1), False)] * misses + [((0, -1), True)] * hits

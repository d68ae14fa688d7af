"""What a session delegates: a rule with a bound, from a budget or a rule.

>>> from counterpoint import PureDP
>>> delegated_rule(PureDP(1), None)
Filter(PureDP(1))
"""

from counterpoint.composition.rules.amplified import Amplified
from counterpoint.composition.rules.converted import Converted
from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.rule import Rule
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.numbers import Number
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import OfSample
from counterpoint.sources.source import Source


def delegated_rule(within: Loss | Rule, delta: Number | None, sampled: Number | None = None) -> Rule:
    """The rule of a delegated session: of a budget its filter; with a delta, converted; on a sample, amplified."""
    rule = within if isinstance(within, Rule) else Filter(within)
    if rule.halts:
        raise InvalidParameter("a session refuses and goes on, which is as private; halt=True is for Concurrent")
    promised = rule if delta is None else Converted(rule, delta)
    return promised if sampled is None else Amplified(promised, sampled)


def composed_on(rule: Rule, source: Source) -> Concurrent:
    """What is launched for a delegated session on this source: its rule, on the data or on a sample of them."""
    if not isinstance(rule, Amplified):
        return Concurrent(rule, source.relation)
    if source.unsampled is not None:
        raise NotCovered(f"no sample is drawn of this data: {source.unsampled}")
    return Concurrent(rule, OfSample(rule.rate, source.relation))

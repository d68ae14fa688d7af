"""What a session delegates: a rule with a bound, from a budget or a rule.

>>> from counterpoint import PureDP
>>> delegated_rule(PureDP(1), None)
Filter(PureDP(1))
"""

from counterpoint.composition.rules.converted import Converted
from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.rule import Rule
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number
from counterpoint.privacy.loss import Loss


def delegated_rule(within: Loss | Rule, delta: Number | None) -> Rule:
    """The rule of a delegated session: of a budget its filter; with a delta, converted to it."""
    rule = within if isinstance(within, Rule) else Filter(within)
    if rule.halts:
        raise InvalidParameter("a session refuses and goes on, which is as private; halt=True is for Concurrent")
    return rule if delta is None else Converted(rule, delta)

"""A quote: what a launch would cost, by the very code that would admit it.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.would_cost(cp.Laplace(epsilon=0.4))
Quote(cost=PureDP(0.4), after=PureDP(0.4), mechanism=Laplace(0.4))
"""

from typing import TYPE_CHECKING

from counterpoint.encoding import Value
from counterpoint.errors import CounterpointError, LedgerError
from counterpoint.mechanisms.mechanism import Mechanism, priced
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import Relation

if TYPE_CHECKING:
    from counterpoint.session.session import Session


class Quote(Value, frozen=True):
    """What a launch would cost: its own loss, what would have been lost after it, and if it is refused, why.

    `mechanism` is what would be launched.
    """

    cost: Loss
    after: Loss | None
    refusal: str | None = None
    mechanism: Mechanism | None = None

    @property
    def fits(self) -> bool:
        """Whether the launch would be admitted."""
        return self.refusal is None


def quote_of(session: "Session", mechanism: Mechanism, relation: Relation) -> Quote:
    """What the launch of a fitted mechanism would cost in this session."""
    cost = priced(mechanism).loss
    try:
        account = session._engine.quote(session._path, mechanism, relation)
    except LedgerError:  # no refusal of the rule: the account could not be read
        raise
    except CounterpointError as error:
        return Quote(cost, None, f"{type(error).__name__}: {error}", mechanism)
    return Quote(cost, session.rule.loss(account), None, mechanism)

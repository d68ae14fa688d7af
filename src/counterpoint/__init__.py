"""Counterpoint: interactive differential privacy.

Answer adaptive, interleaved questions about sensitive data with mechanisms that keep secret state, and know at every
moment what privacy has been lost, and by which theorem.

>>> import counterpoint as cp
>>> rule = cp.Filter(cp.ApproxDP(1.0, 1e-6))
>>> account = rule.admit(rule.start(), cp.Laplace(epsilon=0.4, asks=4).claim)
>>> rule.loss(account)
ApproxDP(0.4, 1e-6)
"""

from counterpoint.composition import compose
from counterpoint.composition.filters import Filter, Remaining
from counterpoint.composition.odometers import Odometer, truncated
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.rule import Account, Rule
from counterpoint.composition.slots import Slots
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    Halted,
    InvalidParameter,
    InvalidRequest,
    LedgerError,
    NotAllowed,
    NotCovered,
    RelationMismatch,
    SecretLeak,
    TapeMismatch,
)
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.interaction import Analyst, View, interact
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.mechanisms.postprocessing import Postprocessor, postprocess
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.privacy import relations
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    TradeOff,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.privacy.messages import Ask, Message, To, Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret
from counterpoint.randomness.coins import Coins
from counterpoint.randomness.enumerated import EnumeratedCoins, Law
from counterpoint.randomness.secure import SecureCoins
from counterpoint.randomness.seeded import SeededCoins
from counterpoint.randomness.tape import RecordingCoins, ReplayedCoins

__version__ = "0.1.0.dev0"

__all__ = [
    "Account",
    "Analyst",
    "ApproxDP",
    "ApproxzCDP",
    "Ask",
    "BudgetExceeded",
    "Certificate",
    "Claim",
    "Coins",
    "Concurrent",
    "CounterpointError",
    "EnumeratedCoins",
    "Filter",
    "Gaussian",
    "GaussianDP",
    "Halted",
    "InteractiveRandomizedResponse",
    "InvalidParameter",
    "InvalidRequest",
    "Laplace",
    "Launch",
    "Law",
    "LedgerError",
    "Loss",
    "Mechanism",
    "Message",
    "NotAllowed",
    "NotCovered",
    "Odometer",
    "Parallel",
    "Postprocessor",
    "ProbabilisticDP",
    "PureDP",
    "RandomizedResponse",
    "RecordingCoins",
    "Refused",
    "Relation",
    "RelationMismatch",
    "Remaining",
    "RenyiDP",
    "ReplayedCoins",
    "Rule",
    "Secret",
    "SecretLeak",
    "SecureCoins",
    "SeededCoins",
    "Slots",
    "State",
    "TapeMismatch",
    "To",
    "TradeOff",
    "Unbounded",
    "Update",
    "View",
    "compose",
    "interact",
    "postprocess",
    "relations",
    "tCDP",
    "truncated",
    "zCDP",
]

"""The public names of `counterpoint.verify`."""

from counterpoint.verify.auditing import audit as audit
from counterpoint.verify.audits.audit_report import Audit as Audit
from counterpoint.verify.decomposing import (
    CurveTooHigh as CurveTooHigh,
    DeltaTooSmall as DeltaTooSmall,
    decompose as decompose,
)
from counterpoint.verify.equivalence import (
    equivalent as equivalent,
    told_apart as told_apart,
)
from counterpoint.verify.exact_loss import (
    ExactLoss as ExactLoss,
    exact as exact,
)
from counterpoint.verify.exactly.adversary import Adversary as Adversary
from counterpoint.verify.games.finite import (
    FiniteMechanism as FiniteMechanism,
    Outcome as Outcome,
)
from counterpoint.verify.games.game import Game as Game
from counterpoint.verify.games.two_worlds import (
    two_adaptive_worlds as two_adaptive_worlds,
    two_worlds as two_worlds,
)
from counterpoint.verify.games.unit_by_unit import UnitByUnit as UnitByUnit
from counterpoint.verify.shipped.sessions import session_game as session_game
from counterpoint.verify.simulating.by_curve import CurveDecomposition as CurveDecomposition
from counterpoint.verify.simulating.decomposition import Decomposition as Decomposition
from counterpoint.verify.verdict import Verdict as Verdict

__all__: list[str]

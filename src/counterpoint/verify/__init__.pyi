"""The public names of `counterpoint.verify`."""

from counterpoint.verify.audits.audit import audit as audit
from counterpoint.verify.audits.report import Audit as Audit
from counterpoint.verify.decomposition import (
    CurveTooHigh as CurveTooHigh,
    DeltaTooSmall as DeltaTooSmall,
    decompose as decompose,
)
from counterpoint.verify.equivalence import equivalent as equivalent, distinguisher as distinguisher
from counterpoint.verify.exact_loss import ExactLoss as ExactLoss, exact as exact
from counterpoint.verify.adversary import Adversary as Adversary
from counterpoint.verify.finite import FiniteMechanism as FiniteMechanism, Outcome as Outcome
from counterpoint.verify.game import Game as Game
from counterpoint.verify.coupling import two_adaptive_worlds as two_adaptive_worlds, two_worlds as two_worlds
from counterpoint.verify.unit_by_unit import UnitByUnit as UnitByUnit
from counterpoint.verify.catalogue.instances import session_game as session_game
from counterpoint.verify.curve_simulator import CurveDecomposition as CurveDecomposition
from counterpoint.verify.simulator import Decomposition as Decomposition
from counterpoint.verify.verdict import Verdict as Verdict

__all__: list[str]

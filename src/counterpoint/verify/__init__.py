"""Proof by computation: what a mechanism really loses, against every adversary on small instances.

`exact` enumerates the very code that runs; `session_game` is the worst case of a rule over all adaptive launches;
`decompose` makes a mechanism out of one randomized response; `audit` plays many games with instances of any size;
`FiniteMechanism` is for trying theorems out; `Game` is the definition of privacy itself (Henzinger et al. 2024, Def
3.7). Whether a claim holds is a `Verdict`: holds, refuted or undecided.

>>> import counterpoint as cp
>>> mechanism = cp.Laplace(epsilon=1, asks=3)
>>> round(cp.verify.exact(mechanism, rounds=3).delta_at(0.5), 6)
0.077796
>>> cp.verify.exact(mechanism, rounds=3).judge(mechanism.claim)
Verdict.HOLDS
>>> print(cp.verify.exact(cp.RandomizedResponse(1), rounds=1).adversary)
send Ask(private=0 | 1)
  (False, 0): say world 0
  (False, 1): say world 1
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterpoint.verify.auditing import audit as audit
    from counterpoint.verify.audits.audit_report import Audit as Audit
    from counterpoint.verify.decomposing import DeltaTooSmall as DeltaTooSmall
    from counterpoint.verify.decomposing import decompose as decompose
    from counterpoint.verify.exact_loss import ExactLoss as ExactLoss
    from counterpoint.verify.exact_loss import exact as exact
    from counterpoint.verify.exactly.adversary import Adversary as Adversary
    from counterpoint.verify.games.finite import FiniteMechanism as FiniteMechanism
    from counterpoint.verify.games.finite import Outcome as Outcome
    from counterpoint.verify.games.game import Game as Game
    from counterpoint.verify.shipped.sessions import session_game as session_game
    from counterpoint.verify.simulating.decomposition import Decomposition as Decomposition
    from counterpoint.verify.verdict import Verdict as Verdict

_HOMES = {
    "Adversary": "adversary",
    "Audit": "audit_report",
    "Decomposition": "decomposition",
    "DeltaTooSmall": "decomposing",
    "ExactLoss": "exact_loss",
    "FiniteMechanism": "finite",
    "Game": "game",
    "Outcome": "finite",
    "Verdict": "verdict",
    "audit": "auditing",
    "decompose": "decomposing",
    "exact": "exact_loss",
    "session_game": "sessions",
}
__all__ = [
    "Adversary",
    "Audit",
    "Decomposition",
    "DeltaTooSmall",
    "ExactLoss",
    "FiniteMechanism",
    "Game",
    "Outcome",
    "Verdict",
    "audit",
    "decompose",
    "exact",
    "session_game",
]


def __getattr__(name: str) -> object:
    """Import a public name where it lives, once."""
    if name not in _HOMES:
        raise AttributeError(f"counterpoint.verify has no {name!r}")
    value = getattr(import_module(f"counterpoint.verify.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

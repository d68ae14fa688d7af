"""Proof by computation: what a mechanism really loses, against every adversary on small instances.

`exact` enumerates the very code that runs; `session_game` is the worst case of a rule over all adaptive launches;
`FiniteMechanism` is for trying theorems out; `Game` is the definition of privacy itself (S4 Def 3.7).

>>> import counterpoint as cp
>>> mechanism = cp.Laplace(epsilon=1, asks=3)
>>> round(cp.verify.exact(mechanism, rounds=3).delta_at(0.5), 6)
0.077796
>>> print(cp.verify.exact(cp.RandomizedResponse(1), rounds=1).adversary)
send Ask(private=0 | 1)
  (False, 0): say world 0
  (False, 1): say world 1
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterpoint.verify.adversary import Adversary as Adversary
    from counterpoint.verify.exact_loss import ExactLoss as ExactLoss
    from counterpoint.verify.exact_loss import exact as exact
    from counterpoint.verify.finite import FiniteMechanism as FiniteMechanism
    from counterpoint.verify.finite import Outcome as Outcome
    from counterpoint.verify.game import Game as Game
    from counterpoint.verify.sessions import session_game as session_game

_HOMES = {
    "Adversary": "adversary",
    "ExactLoss": "exact_loss",
    "FiniteMechanism": "finite",
    "Game": "game",
    "Outcome": "finite",
    "exact": "exact_loss",
    "session_game": "sessions",
}
__all__ = ["Adversary", "ExactLoss", "FiniteMechanism", "Game", "Outcome", "exact", "session_game"]


def __getattr__(name: str) -> object:
    """Import a public name where it lives, once."""
    if name not in _HOMES:
        raise AttributeError(f"counterpoint.verify has no {name!r}")
    value = getattr(import_module(f"counterpoint.verify.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

"""Proof by computation: the exact loss of a mechanism against every adversary, on small instances.

`exact` enumerates the code that runs in production; `session_game` is the worst case of a rule over all adaptive
launches; `decompose` simulates a mechanism by one randomized response; `audit` plays many games with instances of any
size; `FiniteMechanism` is for testing theorems; `Game` is the definition of privacy itself (Henzinger et al. 2024, Def
3.7); `equivalent` compares two mechanisms. Whether a claim holds is a `Verdict`: holds, refuted or undecided.

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

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

"""Counterpoint: interactive differential privacy.

Answer adaptive, interleaved questions about sensitive data with mechanisms that keep secret state, and know at every
moment what privacy has been lost, and by which theorem.

>>> import counterpoint as cp
>>> rule = cp.Filter(cp.ApproxDP(1.0, 1e-6))
>>> account = rule.admit(rule.start(), cp.Laplace(epsilon=0.4, asks=4).claim)
>>> rule.loss(account)
ApproxDP(0.4, 1e-6)

What most programs use is at the top level; the rest is in namespaces, such as `cp.errors` and `cp.answers`.
`__init__.pyi` lists the public names. Each is imported when it is first used, so that importing the package costs next
to nothing.
"""

from counterpoint.lazy import listed

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = listed(__name__)

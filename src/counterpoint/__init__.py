"""Counterpoint: interactive differential privacy.

Answer adaptive, interleaved questions about sensitive data with mechanisms that keep secret state, and know at every
moment what privacy has been lost, and by which theorem.

>>> import counterpoint as cp
>>> rule = cp.Filter(cp.ApproxDP(1.0, 1e-6))
>>> account = rule.admit(rule.start(), cp.Laplace(epsilon=0.4, asks=4).claim)
>>> rule.loss(account)
ApproxDP(0.4, 1e-6)

`__init__.pyi` lists the public names. Each is imported when it is first used, so that importing the package costs next
to nothing.
"""

from counterpoint.names import listed, load

__version__ = "0.1.0.dev0"

# names that have moved into a namespace; their old place goes with the version after 0.1
_MOVED = {
    "local": (
        "AtMost",
        "Cores",
        "Crowd",
        "Data",
        "Done",
        "Frequencies",
        "Graph",
        "MultiSparseVector",
        "Protocol",
        "Round",
        "Server",
        "core_decomposition",
        "core_protocol",
        "heavy_hitters",
        "histogram_of_users",
    ),
    "verify": ("two_adaptive_worlds", "two_worlds"),
}

__getattr__, __dir__, __all__ = listed(__name__, moved=_MOVED)


def load_everything() -> None:
    """Import every public name: what reads stored data must know all classes that it may name.

    >>> load_everything()
    """
    load(__name__)

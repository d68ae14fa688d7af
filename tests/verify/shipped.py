"""Everything of a kind that the package ships, found by walking it, so that nothing new can be forgotten."""

import pkgutil
from importlib import import_module
from inspect import isabstract

import counterpoint

ABSTRACT = {"Additive", "NoisyThreshold", "Composite", "OneValue", "PairSimulator", "Response"}
EXCUSED = {
    "FiniteMechanism": "what theorems are tried out on: it claims only what it is told to",
    "OneOfTwo": "claims nothing: it serves to compare two mechanisms, and its tests compare some",
    "Simulator": "claims nothing of its own: what it answers has the law of what it simulates, which has tests",
    "CurveSimulator": "the same, for a trade-off curve",
    "External": "accepts nothing and answers nothing: what it claims was declared, and is about another tool's release",
    "InService": "a client's view of a mechanism in a service, which is launched and verified there",
}
EXCUSED_RULES = {"Exhausted": "admits nothing, so there is nothing to play"}


def shipped(kind):
    """All concrete classes of a kind that the package defines, wherever they are."""
    for module in pkgutil.walk_packages(counterpoint.__path__, "counterpoint."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    waiting, found = [kind], set()
    while waiting:
        below = waiting.pop().__subclasses__()
        waiting += below
        found.update(c for c in below if c.__module__.startswith("counterpoint.") and not isabstract(c))
    return found


def held(value):
    """The types of everything that a value is made of, and of what they extend."""
    yield from type(value).__mro__
    parts = [getattr(value, name) for name in getattr(value, "__struct_fields__", ())]
    for part in [*parts, *(value if isinstance(value, tuple) else ())]:
        yield from held(part)

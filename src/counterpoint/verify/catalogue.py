"""Every shipped mechanism, rule and composite on a small instance: its claimed loss beside its exact loss.

`CATALOGUE` is a test, the table of `counterpoint verify`, and the page "How we know" of the guide. Two things are not
enumerated as shipped: counters under zCDP have too fine a grid and run the same code on a coarse one (`coarse.py`), and
Whitehouse et al.'s time-uniform odometers, which promise a bound at all times at once, have their own tests.

>>> from counterpoint.verify.shipped.instances import measure
>>> measured = measure(find_instance("randomized response"))
>>> measured.verdict, round(measured.tightness, 3)
(Verdict.HOLDS, 1.0)
"""

from counterpoint.errors import InvalidParameter
from counterpoint.verify.shipped.instances import Instance
from counterpoint.verify.shipped.measures import MEASURES
from counterpoint.verify.shipped.mechanisms import COMPOSITES, MECHANISMS
from counterpoint.verify.shipped.rules import LOCAL, RULES

CATALOGUE: tuple[Instance, ...] = (*MECHANISMS, *COMPOSITES, *RULES, *MEASURES, *LOCAL)


def find_instance(name: str) -> Instance:
    """The instance of this name.

    >>> find_instance("open door").mechanism
    OpenDoor(1/7)
    """
    for instance in CATALOGUE:
        if instance.name == name:
            return instance
    known = ", ".join(repr(instance.name) for instance in CATALOGUE)
    raise InvalidParameter(f"there is no instance {name!r} in the catalogue; there are: {known}")

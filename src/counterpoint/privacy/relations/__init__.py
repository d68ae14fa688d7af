"""Relations: which pairs of message sequences are neighbours. One family in each file, all of them in one place here.

`Steps` limits how many messages differ, `FirstMessage` which, `MinSeparation` how far from each other, `OneWay` in
which direction, and `Sparse` and `Static` how many children of a composition they reach; `OfSample` is about messages
from a sample of the units, and `Predicate` is any function of the pairs.

>>> from counterpoint.privacy.messages import Update
>>> event_level = one_step()
>>> pairs = [(0, 0), (1, 1), (0, 1), (1, 1)]
>>> event_level.valid([(Update(a), Update(b)) for a, b in pairs])
True
>>> event_level.valid([(Update(a), Update(b)) for a, b in [*pairs, (1, 0)]])
False
"""

from counterpoint.privacy.relations.relation import OfSample, Pair, Predicate, Progress, Relation
from counterpoint.privacy.relations.sparse import Sparse, Static, first_pair_consistent, k_sparse, static_parts
from counterpoint.privacy.relations.steps import (
    FirstMessage,
    MinSeparation,
    OneWay,
    Steps,
    every_step,
    identical,
    one_step,
    up_to_steps,
)

__all__ = [
    "FirstMessage",
    "MinSeparation",
    "OfSample",
    "OneWay",
    "Pair",
    "Predicate",
    "Progress",
    "Relation",
    "Sparse",
    "Static",
    "Steps",
    "every_step",
    "first_pair_consistent",
    "identical",
    "k_sparse",
    "one_step",
    "static_parts",
    "up_to_steps",
]

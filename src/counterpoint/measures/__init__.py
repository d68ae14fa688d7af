"""All the losses in one place: the seven measures, and five that theorems need beside them.

>>> [loss.__name__ for loss in (PureDP, ApproxDP, zCDP, RenyiDP, tCDP, GaussianDP, TradeOff)]
['PureDP', 'ApproxDP', 'zCDP', 'RenyiDP', 'tCDP', 'GaussianDP', 'TradeOff']
>>> [loss.__name__ for loss in (ProbabilisticDP, OneSidedDP, ApproxzCDP, SampledGaussianDP, Unbounded)]
['ProbabilisticDP', 'OneSidedDP', 'ApproxzCDP', 'SampledGaussianDP', 'Unbounded']
"""

import counterpoint.measures.conversions  # noqa: F401 - fills the table in which `loss.as_zcdp()` looks
from counterpoint.measures.approximate import ApproxDP, OneSidedDP, ProbabilisticDP
from counterpoint.measures.concentrated import ApproxzCDP, tCDP, zCDP
from counterpoint.measures.gaussian import GaussianDP, SampledGaussianDP
from counterpoint.measures.loss import Loss
from counterpoint.measures.pure import PureDP, Unbounded
from counterpoint.measures.renyi import RenyiDP
from counterpoint.measures.tradeoff import TradeOff

__all__ = [
    "ApproxDP",
    "ApproxzCDP",
    "GaussianDP",
    "Loss",
    "OneSidedDP",
    "ProbabilisticDP",
    "PureDP",
    "RenyiDP",
    "SampledGaussianDP",
    "TradeOff",
    "Unbounded",
    "tCDP",
    "zCDP",
]

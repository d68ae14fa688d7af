"""All the losses in one place: the seven measures, and five that theorems need beside them.

>>> [loss.__name__ for loss in (PureDP, ApproxDP, zCDP, RenyiDP, tCDP, GaussianDP, TradeOff)]
['PureDP', 'ApproxDP', 'zCDP', 'RenyiDP', 'tCDP', 'GaussianDP', 'TradeOff']
>>> [loss.__name__ for loss in (ProbabilisticDP, OneSidedDP, ApproxzCDP, SampledGaussianDP, Unbounded)]
['ProbabilisticDP', 'OneSidedDP', 'ApproxzCDP', 'SampledGaussianDP', 'Unbounded']
"""

from counterpoint.privacy.loss import Loss
from counterpoint.privacy.measures.approximate import ApproxDP
from counterpoint.privacy.measures.approximate_zcdp import ApproxzCDP
from counterpoint.privacy.measures.gaussian import GaussianDP
from counterpoint.privacy.measures.one_sided import OneSidedDP
from counterpoint.privacy.measures.probabilistic import ProbabilisticDP
from counterpoint.privacy.measures.pure import PureDP
from counterpoint.privacy.measures.renyi import RenyiDP
from counterpoint.privacy.measures.sampled_gaussian import SampledGaussianDP
from counterpoint.privacy.measures.tcdp import tCDP
from counterpoint.privacy.measures.tradeoff import TradeOff
from counterpoint.privacy.measures.unbounded import Unbounded
from counterpoint.privacy.measures.zcdp import zCDP

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

"""The public names of `counterpoint.local`."""

from counterpoint.local.cores import (
    Cores as Cores,
    core_decomposition as core_decomposition,
    core_protocol as core_protocol,
)
from counterpoint.local.frequencies import (
    Frequencies as Frequencies,
    heavy_hitters as heavy_hitters,
    histogram_of_users as histogram_of_users,
)
from counterpoint.local.graph import Graph as Graph
from counterpoint.local.multi_sparse_vector import MultiSparseVector as MultiSparseVector
from counterpoint.local.properties import AtMost as AtMost, Data as Data
from counterpoint.local.protocol import Done as Done, Protocol as Protocol, Server as Server
from counterpoint.local.users import Round as Round
from counterpoint.local.users import Crowd as Crowd

__all__: list[str]

"""The public names: the one list of them.

Type checkers and editors read it, and so does `counterpoint.lazy`, which imports each name when it is first used. The
namespaces come first; a name stands in one of them if most users never write it.
"""

from counterpoint import (
    answers as answers,
    client as client,
    coins as coins,
    composition as composition,
    continual as continual,
    datasets as datasets,
    errors as errors,
    ledger as ledger,
    local as local,
    measures as measures,
    mechanisms as mechanisms,
    schema as schema,
    verify as verify,
)
from counterpoint.composition.fixed import compose as compose
from counterpoint.composition.fixed.events import losses_of as losses_of
from counterpoint.privacy import relations as relations
from counterpoint.composition.filters import Filter as Filter
from counterpoint.composition.odometers import Odometer as Odometer
from counterpoint.composition.parallel import Parallel as Parallel
from counterpoint.composition.slots import Slots as Slots
from counterpoint.errors import BudgetExceeded as BudgetExceeded, CounterpointError as CounterpointError
from counterpoint.ledger.location import Durable as Durable
from counterpoint.mechanisms.additive import Gaussian as Gaussian, Laplace as Laplace
from counterpoint.mechanisms.composite import Composite as Composite
from counterpoint.mechanisms.guess_and_check import (
    GuessAndCheck as GuessAndCheck,
    LinearGuessAndCheck as LinearGuessAndCheck,
)
from counterpoint.mechanisms.multiplicative_weights import multiplicative_weights as multiplicative_weights
from counterpoint.mechanisms.postprocessing import postprocess as postprocess
from counterpoint.mechanisms.sampled import Sampled as Sampled
from counterpoint.continual.counter import Counter as Counter
from counterpoint.continual.monotone_histogram import MonotoneHistogram as MonotoneHistogram
from counterpoint.mechanisms.mechanism import Mechanism as Mechanism
from counterpoint.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from counterpoint.mechanisms.noisy_max import NoisyMax as NoisyMax
from counterpoint.mechanisms.partition_selection import PartitionSelection as PartitionSelection
from counterpoint.mechanisms.sparse_vector import AboveThreshold as AboveThreshold, SparseVector as SparseVector
from counterpoint.privacy.claims import Claim as Claim
from counterpoint.measures import (
    ApproxDP as ApproxDP,
    GaussianDP as GaussianDP,
    Loss as Loss,
    PureDP as PureDP,
    RenyiDP as RenyiDP,
    TradeOff as TradeOff,
    tCDP as tCDP,
    zCDP as zCDP,
)
from counterpoint.privacy.secret import Secret as Secret
from counterpoint.client.connect import connect as connect, connect_async as connect_async
from counterpoint.session.handle import Handle as Handle, Quote as Quote
from counterpoint.session.subsessions import Partition as Partition
from counterpoint.session.session import Session as Session, open as open
from counterpoint.sql_requests.select import sql as sql
from counterpoint.queries.quantiles import keys as keys, median as median, quantile as quantile
from counterpoint.queries.extremes import bounds as bounds, maximum as maximum, minimum as minimum, top as top
from counterpoint.queries.aggregates import (
    count as count,
    count_distinct as count_distinct,
    histogram as histogram,
    mean as mean,
    ranks as ranks,
    sum as sum,
)
from counterpoint.queries.select import select as select
from counterpoint.queries.shares import share as share
from counterpoint.queries.variance import stdev as stdev, variance as variance
from counterpoint.schema.columns import (
    boolean as boolean,
    category as category,
    number as number,
    text as text,
    whole as whole,
)
from counterpoint.schema.times import date as date, timestamp as timestamp
from counterpoint.schema.declaration import derived as derived
from counterpoint.sources.infer import columns_from as columns_from, columns_like as columns_like
from counterpoint.schema.units import each_row as each_row
from counterpoint.sources.streams.live_table import LiveTable as LiveTable
from counterpoint.sources.lookup import Lookup as Lookup
from counterpoint.sources.combined import Sources as Sources
from counterpoint.queries.source import Source as Source
from counterpoint.sources.streams.stream import Stream as Stream
from counterpoint.sources.streams.items import total as total
from counterpoint.sources.table import Table as Table

__version__: str
__all__: list[str]

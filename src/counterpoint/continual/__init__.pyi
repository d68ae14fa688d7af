"""The public names of `counterpoint.continual`."""

from counterpoint.continual.horizon import PastHorizon as PastHorizon
from counterpoint.continual.monotone_queries import (
    MonotoneQuery as MonotoneQuery,
    max_of as max_of,
    monotone_query as monotone_query,
)

__all__: list[str]

"""The public names of `counterpoint.schema`."""

from counterpoint.sources.infer import Columns as Columns

__all__: list[str]

"""What is public about data: columns, units, and expressions over them.

The functions that declare a column are at the top level (`cp.number`). `Columns` is what `cp.columns_from` returns.

>>> import counterpoint as cp
>>> isinstance(cp.columns_from({"year": int}), cp.schema.Columns)
True
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

"""What launches cost together: filters, odometers, slots, parallel parts, and the sums they keep.

The rules themselves are at the top level (`cp.Filter`). Here are the types that they share, for a rule of your own.

>>> import counterpoint as cp
>>> account = cp.Filter(cp.PureDP(1)).start()
>>> isinstance(account, cp.composition.Account)
True
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

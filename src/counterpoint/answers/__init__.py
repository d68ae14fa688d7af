"""What an analyst is given: numbers that know their error, choices and tables.

A session makes answers; their classes are here to be named in annotations and `isinstance`.

>>> import counterpoint as cp
>>> session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(1))
>>> isinstance(session.ask(cp.count(), epsilon=0.5), cp.answers.IntAnswer)
True
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

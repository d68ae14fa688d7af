"""Data to try things on: made-up people that come with the package, and real data sets of other packages.

Each comes in two forms. `people()` is the data, for `cp.Table` and a declaration of your own. `people_table()` is the
data with a declaration that suits it, ready for a session.

>>> import counterpoint as cp
>>> session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(1))
>>> session.ask(cp.mean("age"), epsilon=0.5).error() < 1
True
"""

from counterpoint.datasets.tables import flights, flights_table, penguins, penguins_table, people, people_table

__all__ = ["flights", "flights_table", "penguins", "penguins_table", "people", "people_table"]

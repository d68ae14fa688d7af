"""What must not be lost: sessions, launches and answers, on a signed chain.

`cp.Durable` opens a ledger. `recover` and `retire` are what an administrator does to one.

>>> import counterpoint as cp
>>> cp.ledger.retire("nowhere.db", "people", by="olga")
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)

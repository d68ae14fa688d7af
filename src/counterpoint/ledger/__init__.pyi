"""The public names of `counterpoint.ledger`."""

from counterpoint.ledger.admin import recover as recover, retire as retire

__all__: list[str]

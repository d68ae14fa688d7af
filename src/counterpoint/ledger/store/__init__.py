"""The databases that a ledger is written to."""

"""What an operator does with a ledger: list, copy, export, recover, retire."""

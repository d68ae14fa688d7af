"""`counterpoint witness`: a small service that has seen how far the chains of ledgers had come."""

"""Randomness: coins as an argument of a mechanism, and exact samplers on them."""

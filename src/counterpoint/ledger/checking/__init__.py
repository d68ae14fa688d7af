"""A record is checked against itself, its chain, its witness and its data."""

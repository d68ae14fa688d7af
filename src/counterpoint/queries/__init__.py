"""Requests about rows, how far one unit moves their answers, and the statement that computes them."""

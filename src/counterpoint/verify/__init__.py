"""Proof by computation; so far the game that defines privacy."""

"""The game that defines privacy, and what an adversary may send in it."""

"""Expressions over the columns of a row: their grammar, their exact integer arithmetic, and what a row computes."""

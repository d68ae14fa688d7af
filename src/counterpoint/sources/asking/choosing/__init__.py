"""Requests whose answer is a choice: keys, quantiles, extremes, the most frequent values."""

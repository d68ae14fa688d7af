"""Choosing: thresholds, largest scores, keys."""

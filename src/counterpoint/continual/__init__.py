"""Counting under continual observation: counters, and monotone functions of growing histograms."""

"""Counting under continual observation."""

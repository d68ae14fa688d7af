"""Streams: data that keeps arriving."""

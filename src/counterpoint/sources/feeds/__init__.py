"""Feeds: how data arrives from where it is produced, each item once."""

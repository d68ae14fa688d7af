"""Mechanisms made of mechanisms."""

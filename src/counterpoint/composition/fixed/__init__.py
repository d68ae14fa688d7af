"""Losses fixed up front: the optimal bound and the older ones."""

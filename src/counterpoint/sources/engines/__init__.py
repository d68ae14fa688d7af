"""Engines that hold stored rows and run the emitted SQL."""

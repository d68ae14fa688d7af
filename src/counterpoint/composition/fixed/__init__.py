"""The composition of losses that are fixed up front."""

"""A mechanism as a postprocessing of one randomized response."""

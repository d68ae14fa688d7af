"""Counterpoint beside its peers, measured in one run and reported as ratios: `python -m bench [module ...]`."""

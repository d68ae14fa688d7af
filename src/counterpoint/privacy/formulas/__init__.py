"""The formulas behind the measures: divergences, the Gaussian curve, trade-off curves, roots. Numbers in and out."""

"""How often values occur among users that answer with noise: histograms and heavy hitters."""

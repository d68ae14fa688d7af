"""Lower bounds on privacy losses, from many games."""

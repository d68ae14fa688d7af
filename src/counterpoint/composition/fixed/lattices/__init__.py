"""Privacy losses as masses on the points of a lattice, with a proven distance from the true ones."""

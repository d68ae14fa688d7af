"""What a mechanism loses exactly: the tree of a pair of worlds, and the best adversary on it."""

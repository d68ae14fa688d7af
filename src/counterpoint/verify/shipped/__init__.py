"""Everything that is shipped, on small instances."""

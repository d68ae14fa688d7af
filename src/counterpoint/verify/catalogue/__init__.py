"""Everything that is shipped, checked exactly."""

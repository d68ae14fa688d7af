"""Tables and several sources about the same units."""

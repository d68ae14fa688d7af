"""Several sources about the same units: tables and streams under one budget."""

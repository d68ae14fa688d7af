"""Live tables: rows that are put, replaced and removed."""

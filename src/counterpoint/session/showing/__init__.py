"""How a session is shown: as a table, and as a score."""

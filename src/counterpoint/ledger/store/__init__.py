"""Where records are: SQLite or PostgreSQL, one transaction at a time."""

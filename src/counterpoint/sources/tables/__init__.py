"""Tables: rows that stand still."""

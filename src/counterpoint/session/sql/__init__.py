"""A closed part of SQL: one SELECT of aggregates, compiled to the same requests that Python makes."""

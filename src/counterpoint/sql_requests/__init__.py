"""A SELECT as a request."""

"""The service: several people, one budget, over HTTP. No mathematics is in it."""

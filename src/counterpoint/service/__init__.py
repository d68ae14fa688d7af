"""The HTTP service, its dashboard, and its client."""

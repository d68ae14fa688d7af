"""The HTTP service and its dashboard: who calls, what they may see, and what is answered."""

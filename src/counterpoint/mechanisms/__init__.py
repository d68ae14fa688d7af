"""State machines that answer with noise, one step for each message."""

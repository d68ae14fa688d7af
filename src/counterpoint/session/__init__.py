"""What an analyst holds: a session, its handles, and sessions inside it."""

"""The client: the API of a session, over HTTP."""

"""The client: the calls of a local session, made to a service. It imports no web framework."""

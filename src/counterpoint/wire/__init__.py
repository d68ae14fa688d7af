"""What a service and its clients send to each other; neither is imported here."""

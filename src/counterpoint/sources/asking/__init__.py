"""What may be asked: requests, conditions, and how far one unit can move an answer."""

"""What an analyst is given: numbers that know their error, choices and tables."""

"""Core numbers of a graph whose vertices answer with noise."""

"""Data that arrive: streams, live tables, and the feeds that fill them."""

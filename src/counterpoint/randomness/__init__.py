"""Coins: secure, enumerated, taped and seeded, with exact integer noise."""

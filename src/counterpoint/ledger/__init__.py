"""The record of charges, states and answers: what a session keeps, and what a crash must not lose."""

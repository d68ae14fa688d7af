"""Losses, relations, messages, secrets, claims and certificates: the words in which privacy is promised."""

"""Local-model protocols: an untrusted server, users who hold their own data, many rounds (S4 sec. 8 and 9)."""

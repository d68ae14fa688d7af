"""Local-model protocols: an untrusted server, users who hold their own data, many rounds.

See Henzinger et al. 2024, sec. 8 and 9.
"""

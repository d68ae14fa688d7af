r"""LIKE as a regular expression that never backtracks, for engines whose LIKE does and for Python.

An engine that tries every way to match the % of a pattern takes hours for one long row, which would reveal that row.

>>> steady_pattern("a%")
'(?s)^a.*$(?!.)'
"""

import re


def steady_pattern(like: str) -> str:
    r"""A regular expression that matches what LIKE matches, without backtracking.

    The pieces between % have fixed lengths, so the first place where a piece matches leaves the most text for the later
    pieces: no other place need be tried, and the atomic groups (?>...) try none.

    >>> steady_pattern("a%b_%c.")
    '(?s)^a(?>.*?b.).*c\\.$(?!.)'
    """
    first, *rest = ["".join("." if sign == "_" else re.escape(sign) for sign in piece) for piece in like.split("%")]
    found = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return f"(?s)^{first}{found}{f'.*{rest[-1]}' if rest else ''}$(?!.)"  # $ alone may stand before a last newline

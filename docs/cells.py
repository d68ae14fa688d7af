r"""Cells of a script: it is cut at lines that begin with `# %%`, as editors do.

>>> [cell] = cells("a docstring\n# %% 1. Adding\n# A comment.\nprint(1 +\n  2)\n")
>>> cell.head, cell.notes, cell.code, cell.lines
('1. Adding', 'A comment.', 'print(1 +\n  2)', 1)
"""

import io
import re
import tokenize
from typing import NamedTuple


class Cell(NamedTuple):
    """What stands after `# %%`, the comments that follow it, and the code."""

    head: str
    notes: str
    code: str

    @property
    def number(self) -> int:
        """The number that the head begins with."""
        return int(self.head.partition(".")[0])

    @property
    def title(self) -> str:
        """The head without its number."""
        return self.head.partition(". ")[2]

    @property
    def lines(self) -> int:
        """The logical lines of the code, as Python's tokenizer counts them: no comments, no blank lines."""
        tokens = tokenize.generate_tokens(io.StringIO(f"{self.code}\n").readline)
        return sum(token.type == tokenize.NEWLINE for token in tokens)


def cells(script: str) -> list[Cell]:
    """The cells of a script; what stands before the first one is left out."""
    heads_and_bodies = re.split(r"^# %%(.*)$", script, flags=re.MULTILINE)[1:]
    pairs = zip(heads_and_bodies[::2], heads_and_bodies[1::2], strict=True)
    return [_cell(head.strip(), body.strip("\n")) for head, body in pairs]


def _cell(head: str, body: str) -> Cell:
    lines = body.splitlines()
    first = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    notes = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:first])
    return Cell(head, notes, "\n".join(lines[first:]).strip("\n"))

"""Shows the examples in docstrings as code: a griffe extension for the API pages of the site.

Docstrings hold plain doctests. Markdown would read `>>>` as a quotation of a quotation and what follows as prose, so
each run of lines from a prompt to the next blank line is put into a fence before the page is made.
"""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FenceDoctests(Extension):
    """Fences every doctest in every docstring."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for everything that has been collected."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with each example in a fence."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)

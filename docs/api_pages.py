"""How docstrings and classes are shown on the API pages of the site: a griffe extension.

Docstrings hold plain doctests. Markdown would read `>>>` as a quotation of a quotation and what follows as prose, so
each run of lines from a prompt to the next blank line is put into a fence before the page is made. A class whose fields
are its parameters has no written constructor: its call is put on top of its docstring.
"""

import re
from typing import Any

from griffe import Class, Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_VALUES = {"Value", "Struct"}


class ApiPages(Extension):
    """Fences every doctest in every docstring, and shows how a class of declared fields is called."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for everything that has been collected."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
            if isinstance(obj, Class) and _VALUES & {str(base).rpartition(".")[2] for base in obj.bases}:
                obj.docstring.value = f"```python\n{call(obj)}\n```\n\n{obj.docstring.value}"


def fenced(text: str) -> str:
    """The text with each example in a fence."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def call(kind: Class) -> str:
    """The call that makes a value, with its fields in order and their defaults."""
    fields = [
        f"{name}={field.value}" if field.value is not None else name
        for name, field in kind.attributes.items()
        if field.annotation is not None and not name.startswith("_") and "property" not in field.labels
    ]
    shown = re.sub(r"=default\((.*?)\)(?=, |$)", r"=\1", ", ".join(fields))
    shown = re.sub(r"Fraction\((\d+)\)", r"\1", shown)
    return f"{kind.name}({shown})"

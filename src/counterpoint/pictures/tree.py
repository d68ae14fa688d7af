"""A derivation as a tree: foldable in a notebook, indented in a terminal. Below depth two it is folded, and so are
premises beyond the first dozen.

>>> from counterpoint.privacy.certificates import Certificate
>>> inner = Certificate("each answer is PureDP(0.1)", "discrete Laplace")
>>> print(as_details(Certificate("two answers are PureDP(0.2)", "basic composition", (inner,))))
<details open=""><summary>two answers are PureDP(0.2)</summary><span class="cp-by">basic composition</span>...
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from counterpoint.pictures.markup import Markup, element, joined
from counterpoint.pictures.styles import SHEET

if TYPE_CHECKING:
    from rich.tree import Tree

_OPEN = 2
"""How many levels are unfolded at first."""
_MANY = 12
"""How many premises of one line are shown; the others are folded."""


class Derivation(Protocol):
    """A statement, why it holds, and what it rests on."""

    @property
    def statement(self) -> str:
        """What holds."""

    @property
    def theorem(self) -> str:
        """By which theorem."""

    @property
    def premises(self) -> "Sequence[Derivation]":
        """From what."""


def as_details(root: Derivation, depth: int = 0) -> Markup:
    """Nested `<details>`; one without premises is a line."""
    by = element("span", root.theorem, class_="cp-by")
    if not root.premises:
        return joined(element("span", root.statement), by)
    lines = [element("li", as_details(premise, depth + 1)) for premise in root.premises]
    if len(lines) > _MANY + 1:
        more = element("summary", f"and {len(lines) - _MANY} more")
        lines[_MANY:] = [element("li", element("details", more, element("ul", *lines[_MANY:])))]
    unfolded = "" if depth < _OPEN else None
    return element("details", element("summary", root.statement), by, element("ul", *lines), open=unfolded)


def as_page(root: Derivation) -> Markup:
    """The tree with its styles, for a notebook."""
    tree = element("div", as_details(root), class_="cp-tree")
    return joined(element("style", Markup(SHEET)), element("div", tree, class_="cp-picture cp-figure"))


def as_rich(root: Derivation) -> "Tree":
    """The tree for a terminal; rich draws it in ASCII where Unicode is missing."""
    from rich.text import Text  # noqa: PLC0415 - rich is imported only where something is shown
    from rich.tree import Tree  # noqa: PLC0415 - as above

    tree = Tree(Text.assemble(root.statement, ("\nby " + root.theorem, "dim")), guide_style="dim")
    for premise in root.premises:
        tree.add(as_rich(premise))
    return tree

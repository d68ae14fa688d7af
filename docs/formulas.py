r"""Formulas of the pages, as the browser's own MathML: a Markdown extension, so that the site needs no script for them.

`$...$` is a formula in a line and a block that begins and ends with `$$` is one by itself, both in LaTeX, as GitHub
shows them too. A dollar sign that is not a formula's is written `\$`.
"""

import re
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor


def _element(latex: str, display: str) -> Element:
    text = convert(latex.strip(), display=display)
    return fromstring(re.sub(r' xmlns="[^"]*"', "", text))


class _InLine(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802 - Markdown's name
        return _element(m[1], "inline"), m.start(0), m.end(0)


class _Block(BlockProcessor):
    def test(self, parent: Element, block: str) -> bool:
        return block.startswith("$$") and block.rstrip().endswith("$$")

    def run(self, parent: Element, blocks: list[str]) -> None:
        shown = Element("p", {"class": "formula"})
        shown.append(_element(blocks.pop(0).strip().strip("$"), "block"))
        parent.append(shown)


class Formulas(Extension):
    """Reads formulas, in lines and in blocks."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name
        """Called by Markdown."""
        md.inlinePatterns.register(
            _InLine(r"(?<![\\$\w])\$(?![\s$])([^$\n]+?(?:\n[^$\n]+?)?)(?<!\s)\$(?!\w)", md), "formula", 185
        )
        md.parser.blockprocessors.register(_Block(md.parser), "formula", 95)


def makeExtension(**options: Any) -> Formulas:  # noqa: N802 - Markdown's name
    """Called by Markdown."""
    return Formulas(**options)

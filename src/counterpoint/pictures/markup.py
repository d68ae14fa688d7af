"""Markup that cannot be confused with text: what is not marked up already is escaped.

Keys, requests and names of sessions are chosen by people, and may look like markup.

>>> element("text", "a < b", x=1.5, class_="strong", aria_label='say "b"')
'<text x="1.5" class="strong" aria-label="say &quot;b&quot;">a &lt; b</text>'
"""

from html import escape


class Markup(str):
    """Text that is markup already, and stays as it is."""

    __slots__ = ()


def element(tag: str, *inside: str, **attributes: str | float | None) -> Markup:
    """An element of SVG or HTML. An attribute that is None is left out; `class_` is class, `aria_label` aria-label."""
    written = "".join(f" {_name(key)}={_value(value)}" for key, value in attributes.items() if value is not None)
    return Markup(f"<{tag}{written}>{joined(*inside)}</{tag}>")


def joined(*parts: str) -> Markup:
    """One after the other; what is no markup is escaped.

    >>> joined(element("b", "x"), " & y")
    '<b>x</b> &amp; y'
    """
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def percent(share: float) -> str:
    """A share of the width, as SVG writes it.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.33%')
    """
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    written = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
    return f'"{escape(written)}"'

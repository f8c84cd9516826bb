"""Elements of a page. Only this module converts text to markup, so that every name is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from xml.etree.ElementTree import Element, tostring

if TYPE_CHECKING:
    from collections.abc import Mapping

    Value: TypeAlias = str | int | float
    Child: TypeAlias = Element | str | None


def node(tag: str, attributes: Mapping[str, Value] | None = None, *children: Child) -> Element:
    """Return an element.

    Args:
        attributes: floats are written with two digits, finer than any screen shows.
        children: text and elements in order; None is skipped.
    """
    made = Element(tag, {name: value_text(value) for name, value in (attributes or {}).items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child is not None and last is None:
            made.text = (made.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return made


def value_text(value: Value) -> str:
    """Return the value of an attribute as text."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def to_html(root: Element) -> str:
    """Return a whole page."""
    return f"<!doctype html>\n{tostring(root, encoding='unicode', method='html')}\n"

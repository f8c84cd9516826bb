"""Pages read as a strict reader does: every element closed, tables as rows of text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

_VOID: Final = frozenset({"meta"})


@dataclass(kw_only=True)
class Element:
    """An element; ``text`` is what is between its tags, that of inner elements too."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Elements of a kind, in their order."""
        return [
            *([self] if self.tag == tag else []),
            *(found for child in self.children for found in child.all(tag)),
        ]

    def with_class(self, name: str) -> list[Element]:
        """Elements of a class, in their order."""
        found = [each for child in self.children for each in child.with_class(name)]
        return [*([self] if name in self.attributes.get("class", "").split() else []), *found]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element(tag="", attributes={})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        made = Element(tag=tag, attributes={name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in _VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read_page(text: str) -> Element:
    """Parse a page, which must be well-formed."""
    assert text.startswith("<!doctype html>\n<html")
    reader = _Reader()
    # SVG's own elements are matched by their small letters; the page says viewBox.
    reader.feed(text.removeprefix("<!doctype html>"))
    reader.close()
    assert len(reader.open) == 1, f"never closed: {[each.tag for each in reader.open[1:]]}"
    return reader.root


def tables(page: Element) -> dict[str, list[dict[str, str]]]:
    """Tables with a caption: by its beginning up to the first comma or semicolon, a mapping a row."""
    found = {}
    for table in page.all("table"):
        for caption in table.all("caption"):
            heads, *rows = ([cell.text for cell in row.children] for row in table.all("tr"))
            name = caption.text.partition(";")[0].partition(",")[0]
            found[name] = [dict(zip(heads, row, strict=True)) for row in rows]
    return found


def signs(page: Element) -> dict[str, str]:
    """What the first lines say, by topic."""
    return {
        row.all("th")[0].text: row.all("td")[-1].text for table in page.with_class("signs") for row in table.all("tr")
    }

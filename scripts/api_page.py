"""Write docs/api.md from the docstrings of what the package exports."""

from __future__ import annotations

import gc
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import griffe

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "api.md"
_INTRODUCTION: Final = """# Python API

All that `penstock` promises: catalogs, tables, functions, values and errors, with their docstrings. The names are
imported from `penstock` (`from penstock import Catalog`); every other name of the package is internal and may change
without notice. `scripts/api_page.py` writes this page.
"""
_CHANGES: Final = "penstock.catalog.changes"
_STARS: Final = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
_NAMESPACES: Final = {
    "TableInspection": "inspect",
    "TableMaintenance": "maintenance",
    "TablePreview": "preview",
    "TableVersions": "versions",
}
"""Classes whose methods are called through an attribute of a table."""
_ORDER: Final = ("Catalog", "Table", "Functions", "Schema changes", "Results", "Errors and warnings")


@cache
def load_package() -> griffe.Object | griffe.Alias:
    """Return the package as griffe reads it, with the methods that are declared as operations."""
    extensions = griffe.load_extensions("dataclasses", str(ROOT / "scripts" / "operation_methods.py"))
    gc.disable()  # It would look through all the objects made here again and again: more than half of the time.
    try:
        return griffe.load(
            "penstock", search_paths=[str(ROOT / "src")], docstring_parser="google", extensions=extensions
        )
    finally:
        gc.enable()


def render_page() -> str:
    """Return the page."""
    package = load_package()
    sections: dict[str, list[str]] = {name: [] for name in _ORDER}
    for name in penstock.__all__:
        found = package[name]
        target = found.final_target if isinstance(found, griffe.Alias) else found
        sections[_section(name, target)].append("\n".join(_entry(target)))
    parts = [_INTRODUCTION]
    for title, entries in sections.items():
        if entries:
            parts.append(f"\n## {title}\n\n" + "\n".join(entries))
    return "\n".join(line.rstrip() for line in "".join(parts).split("\n"))


def _section(name: str, target: griffe.Object) -> str:
    if name in {"Catalog", "Table"}:
        return name
    if name in _NAMESPACES:
        return "Table"
    if target.path.startswith(_CHANGES):
        return "Schema changes"
    if target.path.startswith("penstock.errors."):
        return "Errors and warnings"
    return "Functions" if isinstance(target, griffe.Function) else "Results"


def _entry(target: griffe.Object) -> Iterator[str]:
    if isinstance(target, griffe.Class):
        yield f"### {target.name}\n"
        yield from _docstring(target)
        if target.name in {"Catalog", "Table"}:
            for member in _methods(target):
                yield from _function(member, f"{target.name}.{member.name}")
        elif target.name in _NAMESPACES:
            space = _NAMESPACES[target.name]
            for member in _methods(target):
                yield from _function(member, f"Table.{space}.{member.name}")
    elif isinstance(target, griffe.Function):
        yield from _function(target, target.name)
    else:
        yield f"### {target.name}\n"
        yield from _docstring(target)


def _methods(target: griffe.Class) -> Iterator[griffe.Function | griffe.Attribute]:
    members = {**target.members, **target.inherited_members}
    for name, member in members.items():
        final = member.final_target if isinstance(member, griffe.Alias) else member
        if not name.startswith("_") and isinstance(final, griffe.Function | griffe.Attribute) and final.docstring:
            yield final


def _function(target: griffe.Function | griffe.Attribute, name: str) -> Iterator[str]:
    yield f"#### `{name}`\n"
    if isinstance(target, griffe.Function):
        yield f"```text\n{_signature(target)}\n```\n"
    elif target.annotation is not None:
        yield f"Property: `{target.annotation}`.\n"
    yield from _docstring(target)


def _signature(target: griffe.Function) -> str:
    parameters = [each for each in target.parameters if each.name not in {"self", "cls"}]
    parts: list[str] = []
    for each in parameters:
        if each.kind is griffe.ParameterKind.keyword_only and not any(part.startswith("*") for part in parts):
            parts.append("*")
        star = _STARS.get(each.kind, "")
        default = "" if each.default is None or star else f" = {each.default}"
        parts.append(f"{star}{each.name}: {each.annotation}{default}")
    head = f"{target.name}({', '.join(parts)}) -> {target.returns}"
    if len(head) <= 110:
        return head
    return f"{target.name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {target.returns}"


def _docstring(target: griffe.Object) -> Iterator[str]:
    if target.docstring is None:
        return
    for section in target.docstring.parsed:
        match section:
            case griffe.DocstringSectionText(value=text):
                yield f"{_plain(text)}\n"
            case griffe.DocstringSectionParameters(value=items) | griffe.DocstringSectionAttributes(value=items):
                yield "\n".join(f"- `{item.name}`: {_inline(item.description)}" for item in items) + "\n"
            case griffe.DocstringSectionReturns(value=items) | griffe.DocstringSectionYields(value=items):
                yield "Returns: " + " ".join(_inline(item.description) for item in items) + "\n"
            case griffe.DocstringSectionRaises(value=items):
                yield "Raises:\n\n" + "\n".join(f"- `{i.annotation}`: {_inline(i.description)}" for i in items) + "\n"
            case griffe.DocstringSectionAdmonition(value=admonition):
                yield f"{admonition.kind.capitalize()}: {_inline(admonition.contents)}\n"
            case griffe.DocstringSectionExamples():
                yield f"```python\n{section.value}\n```\n"
            case _:
                raise ValueError(f"{target.path}: a section of a docstring that this script does not know: {section}")


def _plain(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _inline(text: str) -> str:
    return " ".join(_plain(text).split())


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")

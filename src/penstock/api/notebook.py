"""The display of tables and catalogs in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from penstock.errors import TableStoreError
from penstock.format.types.text import format_sql_type
from penstock.printable import mask_locations, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot


def table_html(name: str, location: str, schema: TableSchema, load_latest: Callable[[], Snapshot | None]) -> str:
    """Return the HTML for a table in a notebook: its name, its columns, and the latest snapshot if it can be read."""
    columns = [
        (field.name, format_sql_type(field.type), "partition" if field.name in schema.partition_keys else "", text)
        for field in schema.fields
        for text in [field.description or ""]
    ]
    try:
        snapshot = load_latest()
        state = "no snapshot yet" if snapshot is None else repr(snapshot)
    except TableStoreError as error:
        state = f"its latest snapshot cannot be read: {error}"
    return (
        f"<strong>{_html_text(name)}</strong> <code>{_html_text(mask_locations(location))}</code><br>"
        f"{_html_text(state)}{_html_table(('column', 'type', 'key', 'comment'), columns)}"
    )


def names_html(title: str, header: str, names: Iterable[str]) -> str:
    """Return the HTML for a catalog in a notebook: the names in it."""
    return f"<strong>{_html_text(title)}</strong>{_html_table((header,), [(name,) for name in names])}"


def _html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_html_row("th", header), *(_html_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html_text(text: str) -> str:
    return escape(visible(text))

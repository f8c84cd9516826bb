"""The display of tables, catalogs and plans in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from penstock.errors import TableStoreError
from penstock.format.types.text import format_sql_type
from penstock.printable import bytes_text, cell_text, html_text, mask_locations, table_of_html, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot

SAMPLE_ROWS = 5
"""Rows that a notebook shows of a table."""


def table_html(
    name: str,
    location: str,
    schema: TableSchema,
    load_latest: Callable[[], Snapshot | None],
    load_sample: Callable[[], tuple[int, int, pa.Table]],
) -> str:
    """Return the HTML for a table in a notebook: its name, columns, latest snapshot, size and some rows.

    Args:
        load_sample: returns the number of files, their bytes, and rows.
    """
    columns = [
        (field.name, format_sql_type(field.type), "partition" if field.name in schema.partition_keys else "", text)
        for field in schema.fields
        for text in [field.description or ""]
    ]
    sample = ""
    try:
        snapshot = load_latest()
        state = "no snapshot yet" if snapshot is None else repr(snapshot)
        if snapshot is not None:
            files, size, rows = load_sample()
            state += f"; {files:,} files, {bytes_text(size)}"
            cells = [[cell_text(value) for value in row.values()] for row in rows.to_pylist()]
            sample = f"{html_text(f'the first {len(cells)} rows')}{table_of_html(rows.column_names, cells)}"
    except TableStoreError as error:
        state = f"its latest snapshot cannot be read: {error}"
    return (
        f"<strong>{html_text(name)}</strong> <code>{html_text(mask_locations(location))}</code><br>"
        f"{html_text(state)}{table_of_html(('column', 'type', 'key', 'comment'), columns)}{sample}"
    )


def names_html(title: str, header: str, names: Iterable[str]) -> str:
    """Return the HTML for a catalog in a notebook: the names in it."""
    return f"<strong>{html_text(title)}</strong>{table_of_html((header,), [(name,) for name in names])}"


class PlanText(str):
    """Text of several lines, which prompts and notebooks show as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(visible_lines(self))}</pre>"

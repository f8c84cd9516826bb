"""The display of tables, catalogs and plans in notebooks."""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.errors import TableStoreError
from penstock.format.types.text import format_sql_type
from penstock.printable import bytes_text, cell_text, html_text, mask_locations, table_of_html, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot

SAMPLE_ROWS = 5
"""Rows that a notebook shows of a table."""

# Of each end of a table of metadata.
_END_ROWS: Final = 10
_TITLE: Final = b"penstock.title"


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


def with_title(rows: pa.Table, title: str) -> pa.Table:
    """Return rows so that a notebook shows them as HTML with a title; unchanged elsewhere.

    Arrow tables have no HTML of their own. So the notebook is given the function that makes it, which leaves tables
    without such a title to the notebook.
    """
    shell: Any = sys.modules["IPython"].get_ipython() if "ipykernel" in sys.modules else None
    if shell is None:
        return rows
    shell.display_formatter.formatters["text/html"].for_type(pa.Table, arrow_html)
    return rows.replace_schema_metadata({**(rows.schema.metadata or {}), _TITLE: title.encode()})


def arrow_html(rows: pa.Table) -> str | None:
    """Return the HTML for rows of ``with_title``: the first and the last of them; None for other rows."""
    title = (rows.schema.metadata or {}).get(_TITLE)
    if title is None:
        return None
    is_long = rows.num_rows > 2 * _END_ROWS
    shown = pa.concat_tables([rows.slice(0, _END_ROWS), rows.slice(rows.num_rows - _END_ROWS)]) if is_long else rows
    cells = [[cell_text(value) for value in row.values()] for row in shown.to_pylist()]
    if is_long:
        cells.insert(_END_ROWS, ["…"] * rows.num_columns)
    heading = f"<strong>{html_text(title.decode())}</strong> {rows.num_rows:,} rows"
    return f"{heading}{table_of_html(rows.column_names, cells)}"


class PlanText(str):
    """Text of several lines, which prompts and notebooks show as lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(visible_lines(self))}</pre>"

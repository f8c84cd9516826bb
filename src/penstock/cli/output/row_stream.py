"""Rows printed as they arrive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from penstock.cli.output.render import cells_of, csv_header, csv_lines, is_number, json_objects
from penstock.cli.output_format import OutputFormat
from penstock.printable import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.cli.session import Session

_GAP = "   "


class RowStream:
    """Prints batches of one schema: JSON lines, CSV with one header, or a table whose columns widen as needed.

    Every batch is flushed, so that the reader of a pipe receives it immediately.

    Args:
        exact: as for ``print_rows``.
    """

    def __init__(self, session: Session, schema: pa.Schema, *, exact: bool = False) -> None:
        self._exact = exact
        self._format = session.format
        self._schema = schema
        self._has_header = False
        self._widths = [cell_len(visible(field.name)) for field in schema]

    def write(self, batch: pa.RecordBatch) -> None:
        """Print a batch."""
        match self._format:
            case OutputFormat.JSON:
                text = "".join(f"{row}\n" for row in json_objects(batch))
            case OutputFormat.CSV:
                text = self._header(csv_header(self._schema, exact=self._exact)) + csv_lines(batch, exact=self._exact)
            case OutputFormat.TABLE:
                text = self._table(batch)
        sys.stdout.write(text)
        sys.stdout.flush()

    def finish(self) -> None:
        """Print the header if no batch came."""
        if self._format is OutputFormat.CSV:
            sys.stdout.write(self._header(csv_header(self._schema, exact=self._exact)))
        elif self._format is OutputFormat.TABLE:
            sys.stdout.write(self._header(self._title()))

    def _table(self, batch: pa.RecordBatch) -> str:
        rows = [[str(cell) for cell in row] for row in cells_of(batch)]
        # Printed rows cannot be changed: a wider value moves the columns of the rows after it.
        self._widths = [
            max(width, *map(cell_len, texts))
            for width, texts in zip(self._widths, zip(*rows, strict=True), strict=True)
        ]
        return self._header(self._title()) + "".join(map(self._line, rows))

    def _header(self, text: str) -> str:
        if self._has_header:
            return ""
        self._has_header = True
        return text

    def _title(self) -> str:
        names = self._line([visible(field.name) for field in self._schema])
        return f"{names}{'─' * (sum(self._widths) + len(_GAP) * (len(self._widths) - 1))}\n"

    def _line(self, texts: list[str]) -> str:
        cells = [
            text.rjust(width) if is_number(field.type) else set_cell_size(text, width)
            for text, width, field in zip(texts, self._widths, self._schema, strict=True)
        ]
        return f"{_GAP.join(cells).rstrip()}\n"

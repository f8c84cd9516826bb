"""Check the time columns that window functions use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.dialect.parse.script import StatementText
    from penstock.dialect.parse.windows import WindowCall

_TYPES: Final = ("timestamp", "timestamp_ntz")


def check_time(source: StatementText, call: WindowCall, table: str, frame: DataFrame) -> None:
    """Check that the column that a window function names is a time.

    Raises:
        InvalidSqlError: there is no such column, or its type is not a time.
    """
    types = dict(frame.dtypes)
    found = next((kind for name, kind in types.items() if name.lower() == call.column.lower()), None)
    if found in _TYPES:
        return
    times = ", ".join(name for name, kind in types.items() if kind in _TYPES) or "none"
    what = (
        f"{table} has no column '{call.column}'" if found is None else f"'{call.column}' is no time but {found.upper()}"
    )
    raise source.error(call.column_offset, f"{what}; the times of {table} are: {times}")

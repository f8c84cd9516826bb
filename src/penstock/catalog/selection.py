"""Select tables by patterns of their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.catalog.names import TableName
from penstock.errors import InvalidOptionError, NotFoundError

if TYPE_CHECKING:
    from penstock.catalog.backend import Backend


def select_tables(
    warehouse: Backend, *, databases: str = ".*", including: str = ".*", excluding: str | None = None
) -> tuple[str, ...]:
    """Return the sorted names, ``database.table``, of the matching tables; expressions match whole names.

    Args:
        databases: expression for database names.
        including: expression for tables to include, matched with ``table`` and with ``database.table``.
        excluding: expression for tables to exclude from those.

    Raises:
        InvalidOptionError: a text is not a regular expression.
        NotFoundError: no database matches.

    Source:
        Paimon ``flink:action/CompactDatabaseAction.java``, which supports ``database.table`` only.
    """
    wanted, taken = _compile(databases), _compile(including)
    left_out = None if excluding is None else _compile(excluding)
    found = [name for name in warehouse.list_databases() if wanted.fullmatch(name)]
    if not found:
        raise NotFoundError(f"warehouse {warehouse.location}: no database is called '{databases}'")
    return tuple(
        str(TableName(database=database, table=table))
        for database in found
        for table in warehouse.list_tables(database)
        if _matches(taken, database, table) and not (left_out and _matches(left_out, database, table))
    )


def _matches(pattern: re.Pattern[str], database: str, table: str) -> bool:
    return bool(pattern.fullmatch(table) or pattern.fullmatch(f"{database}.{table}"))


def _compile(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidOptionError(f"'{text}' is not a regular expression: {error}") from error

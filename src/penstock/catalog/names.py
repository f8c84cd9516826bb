"""Names of databases and tables, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.errors import InvalidSchemaError

SYSTEM_DATABASE: Final = "sys"
SYSTEM_TABLE_MARK: Final = "$"

_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table inside a catalog.

    Attributes:
        system_table: what follows the ``$``, such as ``snapshots``; None for the table itself.
    """

    database: str
    table: str
    system_table: str | None = None

    def __str__(self) -> str:
        suffix = "" if self.system_table is None else f"{SYSTEM_TABLE_MARK}{self.system_table}"
        return f"{self.database}.{self.table}{suffix}"


def is_location(name: str) -> bool:
    """Whether the text is a path or URI and not a name: it has a slash outside back quotes."""
    return "/" in re.sub(r"`(?:[^`]|``)*`", "", name)


def parse_table_name(text: str) -> TableName:
    """Parse ``database.table`` or ``database.table$system_table``; parts may be in back quotes.

    Raises:
        InvalidSchemaError: not two parts, or one of them cannot be a name.
    """
    parts = _split(text)
    if len(parts) != 2:
        raise InvalidSchemaError(
            f"table name '{text}': expected database.table, such as shop.orders, found {len(parts)} parts"
            " (put a name with a dot in back quotes)"
        )
    database, whole = parts
    table, mark, system_table = whole.partition(SYSTEM_TABLE_MARK)
    check_database_name(database)
    _check_part(table, f"table name '{text}'")
    if mark and not system_table:
        raise InvalidSchemaError(f"table name '{text}': a system table such as 'snapshots' must follow the '$'")
    return TableName(database=database, table=table, system_table=system_table or None)


def parse_data_table_name(text: str) -> TableName:
    """Parse the name of a table that holds rows.

    Raises:
        InvalidSchemaError: it cannot be a name, or is a system table's.
    """
    name = parse_table_name(text)
    if name.system_table is not None:
        raise InvalidSchemaError(
            f"table name '{text}': names with '$' are system tables, which are read only; the table is"
            f" '{name.database}.{name.table}'"
        )
    return name


def check_database_name(name: str) -> None:
    """Check that a database may have that name. Raises ``InvalidSchemaError``."""
    _check_part(name, f"database name '{name}'")
    if name == SYSTEM_DATABASE:
        raise InvalidSchemaError(f"database name '{name}' is reserved for system tables; choose another")
    if SYSTEM_TABLE_MARK in name:
        raise InvalidSchemaError(f"database name '{name}': '{SYSTEM_TABLE_MARK}' is kept for system tables")


def _split(text: str) -> list[str]:
    parts: list[str] = []
    end = -1
    while end < len(text):
        match = _PART.match(text, end + 1)
        if match is None or (match.end() < len(text) and text[match.end()] != "."):
            raise InvalidSchemaError(f"table name '{text}': a back quote is not closed, or text follows it")
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        end = match.end()
    return parts


def _check_part(name: str, what: str) -> None:
    if not name.strip():
        raise InvalidSchemaError(f"{what}: a part of the name is empty; expected something like shop.orders")
    if name in (".", ".."):
        raise InvalidSchemaError(f"{what}: '{name}' would be another directory")
    bad = next((letter for letter in name if letter in "/\\" or not letter.isprintable()), None)
    if bad is not None:
        raise InvalidSchemaError(f"{what}: the character {bad!r} cannot be in a name")

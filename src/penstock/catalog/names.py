"""Names of databases and tables: parse them, and check each name before it becomes part of a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError
from penstock.format.layout import BRANCH_MARK, split_branch

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_DATABASE: Final = "default"
"""The database of names without one, as in Spark and Flink; creating a table in it creates it."""

SYSTEM_DATABASE: Final = "sys"
SYSTEM_TABLE_MARK: Final = "$"

_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]*)")
# A name becomes a directory; file systems allow 255 bytes, and the directory of a database ends in ".db".
_MAX_BYTES: Final = 252


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """The name of a table in a catalog; all parts are valid.

    ``str`` adds backquotes where they are needed, so ``parse_table_name`` returns an equal value.

    Attributes:
        system_table: the part after ``$``, such as ``snapshots``; None for the table itself.

    Raises:
        InvalidSchemaError: a part is not a valid name.
    """

    database: str
    table: str
    system_table: str | None = None

    def __post_init__(self) -> None:
        check_database_name(self.database)
        what = f"table name '{self.database}.{self.table}'"
        check_name(self.table, what)
        if SYSTEM_TABLE_MARK in self.table:
            raise InvalidSchemaError(
                f"{what}: names with '{SYSTEM_TABLE_MARK}' are system tables, which are read only, and branches,"
                f" whose rows and columns can change; the table is"
                f" '{self.database}.{self.table.partition(SYSTEM_TABLE_MARK)[0]}'"
            )

    def __str__(self) -> str:
        suffix = "" if self.system_table is None else f"{SYSTEM_TABLE_MARK}{self.system_table}"
        return f"{_quoted(self.database)}.{_quoted(self.table + suffix)}"


def is_location(name: str) -> bool:
    """Whether the text is a path or URI, not a name: it has a slash outside of backquotes."""
    return "/" in re.sub(r"`(?:[^`]|``)*`", "", name)


def parse_table_name(text: str) -> TableName:
    """Parse ``database.table``, ``database.table$system_table``, or a name in ``default``; parts may be in backquotes.

    Raises:
        InvalidSchemaError: the text has more than two parts, or a part is not a valid name.
    """
    parts = split_name(text)
    if len(parts) > 2:
        raise InvalidSchemaError(
            f"table name '{text}': expected database.table, such as shop.orders, found {len(parts)} parts"
            " (put a name with a dot in backquotes)"
        )
    database, whole = parts if len(parts) == 2 else (DEFAULT_DATABASE, *parts)
    table, mark, system_table = whole.partition(SYSTEM_TABLE_MARK)
    name = TableName(database=database, table=table, system_table=system_table or None)
    if mark and not system_table:
        raise InvalidSchemaError(f"table name '{text}': a system table such as 'snapshots' must follow the '$'")
    return name


def split_table_branch(text: str) -> tuple[str, str | None]:
    """Return the name of the table and of the branch in ``database.table$branch_b``; None for the main branch.

    The parts are not checked, and a location is returned unchanged.

    Raises:
        InvalidSchemaError: a backquote is not closed.
    """
    if is_location(text):
        return text, None
    *database, name = split_name(text)
    table, branch = split_branch(name)
    return (text, None) if branch is None else (join_name((*database, table)), branch)


def join_table_branch(table: str, branch: str) -> str:
    """Return the text from which ``split_table_branch`` returns this table and this branch."""
    *database, name = split_name(table)
    return join_name((*database, f"{name}{BRANCH_MARK}{branch}"))


def parse_data_table_name(text: str) -> TableName:
    """Parse the name of a table that holds rows.

    Raises:
        InvalidSchemaError: the name is not valid, or it names a system table.
    """
    name = parse_table_name(text)
    if name.system_table is not None:
        raise InvalidSchemaError(
            f"table name '{text}': names with '$' are system tables, which are read only, and branches, whose rows"
            " and columns can change; the table is"
            f" '{name.database}.{name.table}'"
        )
    return name


def check_database_name(name: str) -> None:
    """Check that a database name is valid. Raises ``InvalidSchemaError``."""
    check_name(name, f"database name '{name}'")
    if name == SYSTEM_DATABASE:
        raise InvalidSchemaError(f"database name '{name}' is reserved for system tables; choose another")
    if SYSTEM_TABLE_MARK in name:
        raise InvalidSchemaError(f"database name '{name}': '{SYSTEM_TABLE_MARK}' is kept for system tables")


def check_name(name: str, what: str) -> None:
    """Check that a name can be a directory name: not empty or too long, not ``.`` or ``..``, no separators.

    Args:
        what: first words of the error message.

    Raises:
        InvalidSchemaError: the name is not valid.
    """
    if not name.strip():
        raise InvalidSchemaError(f"{what}: a part of the name is empty; expected something like shop.orders")
    if name in (".", ".."):
        raise InvalidSchemaError(f"{what}: '{name}' would be another directory")
    bad = next((letter for letter in name if letter in "/\\" or not letter.isprintable()), None)
    if bad is not None:
        raise InvalidSchemaError(f"{what}: the character {bad!a} cannot be in a name")
    if len(name.encode()) > _MAX_BYTES:
        raise InvalidSchemaError(f"{what}: a part of a name has at most {_MAX_BYTES} bytes, as directories have")


def is_table_name(name: str) -> bool:
    """Whether a directory with that name can be a table."""
    try:
        check_name(name, name)
    except InvalidSchemaError:
        return False
    return SYSTEM_TABLE_MARK not in name


def is_database_name(name: str) -> bool:
    """Whether a database with that name can exist."""
    return is_table_name(name) and name != SYSTEM_DATABASE


def is_path_part(name: str) -> bool:
    """Whether a database, a table, a branch or a system table can have that name; a path, for example, cannot."""
    return is_table_name(name.replace(SYSTEM_TABLE_MARK, "_"))


def in_stored_case(name: str, stored: Iterable[str], what: str) -> str | None:
    """Return the stored name that is equal or, if none is, the one that differs only in case; None if none does.

    Args:
        what: first words of the error message.

    Raises:
        InvalidSchemaError: several names differ only in case.
    """
    found = sorted({each for each in stored if each.lower() == name.lower()})
    if name in found:
        return name
    if len(found) > 1:
        raise InvalidSchemaError(
            f"{what} '{name}': {' and '.join(found)} differ from it only in case; write one of them as it is stored, "
            "or set spark.sql.caseSensitive to true"
        )
    return found[0] if found else None


def split_name(text: str) -> tuple[str, ...]:
    """Return the parts of a name, split at its dots, without backquotes; the parts are not checked.

    Raises:
        InvalidSchemaError: a backquote is not closed.
    """
    parts: list[str] = []
    end = -1
    while end < len(text):
        match = _PART.match(text, end + 1)
        if match is None or (match.end() < len(text) and text[match.end()] != "."):
            raise InvalidSchemaError(f"table name '{text}': a backquote is not closed, or text follows it")
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        end = match.end()
    return tuple(parts)


def join_name(parts: Iterable[str]) -> str:
    """Return the text from which ``split_name`` returns these parts; no part makes it a location."""
    return ".".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`" if any(mark in part for mark in "./`") else part

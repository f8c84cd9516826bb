"""The definition of a procedure, and shared helpers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.catalog.names import split_name
from penstock.dialect.outcome import Outcome, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.api.table import Table
    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState

TEXT: Final[pa.DataType] = pa.string()
LONG: Final[pa.DataType] = pa.int64()
_RESULT: Final = pa.schema({"result": TEXT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure that CALL can run.

    Attributes:
        parameters: parameters in positional order.
        aliases: alternative parameter names of Paimon on Spark or of newer versions.
    """

    parameters: tuple[str, ...]
    run: Callable[[SqlState, Arguments], Outcome]
    aliases: Mapping[str, str] = field(default_factory=dict)


def table_of(state: SqlState, arguments: Arguments, options: Mapping[str, str] | None = None) -> Table:
    """Load the table that the argument ``table`` names.

    Args:
        options: of the handle.
    """
    return state.load(split_name(arguments.needed("table")), options)


def tables_of(state: SqlState, arguments: Arguments) -> list[tuple[str, ...]]:
    """Return the tables that the argument names: one table, or all tables of a database for ``database.*``."""
    path = split_name(arguments.needed("table"))
    if path[-1] != "*":
        return [path]
    catalog, database = state.full_database(path[:-1])
    return [(catalog, database, name) for name in state.catalog(catalog).list_tables(database)]


def success(text: str = "Success") -> Outcome:
    """Return the result of a procedure that has nothing to report."""
    return rows(_RESULT, [(text,)])

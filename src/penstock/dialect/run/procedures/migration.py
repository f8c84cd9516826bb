"""Procedures that migrate directories of files to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.catalog.names import split_name
from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.procedures.procedure import LONG, TEXT, Procedure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.api.migrate import Migration
    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState
    from penstock.errors import TableStoreError

_MIGRATED: Final = pa.schema({"table": TEXT, "files": LONG, "bytes": LONG, "rows": LONG})
_MIGRATED_TABLES: Final = _MIGRATED.append(pa.field("error", TEXT))


def _migrate_table(state: SqlState, arguments: Arguments) -> Outcome:
    _check_connector(arguments)
    if arguments.flag("delete_origin", default=False):
        raise arguments.error("leaves the directory as it is: delete it when you are sure, and leave out delete_origin")
    catalog, name = state.catalog_of(split_name(arguments.needed("target_table")))
    done = catalog.migrate(arguments.needed("source_table"), name, options=arguments.pairs("options"))
    return rows(_MIGRATED, [(name, done.files, done.bytes, done.rows)])


def _migrate_database(state: SqlState, arguments: Arguments) -> Outcome:
    _check_connector(arguments)
    done = state.catalog(state.catalog_name).migrate_database(
        arguments.needed("source_database"),
        arguments.text("target_database"),
        options=arguments.pairs("options"),
        dry_run=arguments.flag("dry_run", default=False),
    )
    return rows(_MIGRATED_TABLES, [(each.table, *_counts(each.result), _text(each.error)) for each in done])


def _counts(done: Migration | None) -> tuple[int, int, int]:
    return (0, 0, 0) if done is None else (done.files, done.bytes, done.rows)


def _text(error: TableStoreError | None) -> str | None:
    return None if error is None else str(error)


def _check_connector(arguments: Arguments) -> None:
    if (arguments.text("connector") or "hive").lower() != "hive":
        raise arguments.error("expects 'hive' for connector: a directory as Hive lays it out")


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "migrate_table": Procedure(
        parameters=("connector", "source_table", "target_table", "options", "parallelism", "delete_origin"),
        run=_migrate_table,
        aliases={"source_type": "connector", "table": "source_table"},
    ),
    "migrate_database": Procedure(
        parameters=("connector", "source_database", "options", "parallelism", "target_database", "dry_run"),
        run=_migrate_database,
        aliases={"source_type": "connector", "database": "source_database"},
    ),
}

"""The procedure that adopts a directory of files as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.catalog.names import split_name
from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.run.procedures.procedure import LONG, TEXT, Procedure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.run.procedures.arguments import Arguments
    from penstock.dialect.state import SqlState

_MIGRATED: Final = pa.schema({"table": TEXT, "files": LONG, "bytes": LONG, "rows": LONG})


def _migrate_table(state: SqlState, arguments: Arguments) -> Outcome:
    if (arguments.text("connector") or "hive").lower() != "hive":
        raise arguments.error("expects 'hive' for connector: a directory as Hive lays it out")
    catalog, name = state.catalog_of(split_name(arguments.needed("target_table")))
    done = catalog.migrate(arguments.needed("source_table"), name, options=arguments.pairs("options"))
    return rows(_MIGRATED, [(name, done.files, done.bytes, done.rows)])


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "migrate_table": Procedure(
        parameters=("connector", "source_table", "target_table", "options", "parallelism"), run=_migrate_table
    ),
}

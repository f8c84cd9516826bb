"""Apply changes to the schema of a stored table; its snapshots and earlier schemas restrict them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.changes import RemoveOption, SetOption, UpdateColumnType
from penstock.catalog.checks.fallback import check_fallback_branch
from penstock.catalog.evolve_schema import apply_changes
from penstock.catalog.schema_files import has_snapshots, list_schema_ids, load_schema
from penstock.clocks import utc_millis
from penstock.datafile.conform import make_batch, null_array
from penstock.datafile.evolve import plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidSchemaError, UnsupportedFeatureError
from penstock.table.read.fallback import KEY as FALLBACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema
    from penstock.io.file_io import FileIO


def change_stored_schema(
    schema: TableSchema, changes: Sequence[SchemaChange], *, table: str, file_io: FileIO, location: str
) -> TableSchema:
    """Return the schema after the changes, or the same object if they have no effect. Nothing is written.

    Raises:
        InvalidSchemaError: existing rows could no longer be read; and as ``apply_changes``.
        InvalidOptionError: a fallback branch that does not exist; and as ``apply_changes``.
    """
    sets_options = any(isinstance(change, SetOption | RemoveOption) for change in changes)
    evolved = apply_changes(
        schema,
        changes,
        table=table,
        has_snapshots=sets_options and has_snapshots(file_io, location),
        time_millis=utc_millis(),
    )
    if any(isinstance(change, SetOption) and change.key == FALLBACK for change in changes):
        check_fallback_branch(evolved.option_map, file_io=file_io, location=location, table=table)
    if evolved is not schema and any(isinstance(change, UpdateColumnType) for change in changes):
        earlier = (number for number in list_schema_ids(file_io, location) if number <= schema.id)
        _check_history((load_schema(file_io, location, number) for number in earlier), evolved, table)
    return evolved


def _check_history(schemas: Iterable[TableSchema], evolved: TableSchema, table: str) -> None:
    """Check that files of each of these schemas can be read with the new one.

    Files keep the schema that they were written with, and a read casts from that schema in one step. So INT to STRING
    and then STRING to DATE, each allowed by itself, would leave files whose INT column cannot be read as a DATE.

    Raises:
        InvalidSchemaError: a column cannot be read; the message names the schema and the column.
    """
    for schema in schemas:
        plan = plan_evolution(schema.fields, evolved.fields)
        written = to_arrow_schema(plan.file_fields)
        try:
            plan.apply(make_batch([null_array(0, each.type) for each in written], written, 0))
        except UnsupportedFeatureError as error:
            raise InvalidSchemaError(
                f"table {table}: rows written with schema-{schema.id} could not be read any more: {error}"
            ) from error

"""Check that files of all earlier schemas can be read with a new schema.

Files keep the schema that they were written with, and a read casts from that schema in one step. So INT to STRING and
then STRING to DATE, each allowed by itself, would leave files whose INT column cannot be read as a DATE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.conform import make_batch, null_array
from penstock.datafile.evolve import plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidSchemaError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.schema import TableSchema


def check_readable_history(schemas: Iterable[TableSchema], evolved: TableSchema, table: str) -> None:
    """Check that files of each of these schemas can be read with the new one.

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

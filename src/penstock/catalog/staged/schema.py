"""Build the schema of a table that is defined again, and find out whether it can follow the table's schema.

Source:
    Paimon (the development branch after 1.4) ``core:catalog/AbstractCatalog.java`` (``replaceTable``): the table keeps
    its directory, snapshots and earlier schemas, and gets another schema; its field ids start again at 0, where ours
    do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.checks.bucket_key import is_chosen
from penstock.catalog.checks.option_changes import check_option_changes
from penstock.catalog.new_schema import TableDefinition, build_schema
from penstock.errors import InvalidOptionError
from penstock.format.types.data_types import DataField, with_nullability
from penstock.format.types.field_ids import highest_field_id, next_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot

_NO_COLUMN = -1


def build_replacement(
    base: TableSchema,
    definition: TableDefinition,
    *,
    defaults: Mapping[str, str],
    table: str,
    time_millis: int,
) -> TableSchema:
    """Build the schema that replaces another one of the same table.

    A column keeps its id if its name and type stay; others get ids that were never used, so no file that was written
    before has values for them.

    Args:
        defaults, table, time_millis: as for ``build_schema``.

    Returns:
        The schema with the next id; ``base`` itself if the definition is that of the table.

    Raises:
        TableStoreError: as ``build_schema``.
    """
    built = build_schema(definition, defaults=defaults, table=table, time_millis=time_millis)
    fields, highest_id = _with_ids(built.fields, base)
    schema = replace(built, id=base.id + 1, fields=fields, highest_field_id=highest_id)
    is_same = replace(schema, id=base.id, options=(), time_millis=base.time_millis) == replace(base, options=())
    return base if is_same and schema.option_map == base.option_map else schema


def why_not_in_place(base: TableSchema, schema: TableSchema, latest: Snapshot | None, table: str) -> str | None:
    """Return why snapshots and earlier files could not be read after this change of the schema; None if they could.

    Args:
        latest: the table's latest snapshot; None if it has none.
    """
    if _partition_columns(base) != _partition_columns(schema) and latest is not None:
        return "its partition columns change, and manifests hold their values without names"
    if latest is not None and latest.index_manifest is not None:
        return f"snapshot {latest.id} has index files, which belong to the files that would be replaced"
    try:
        check_option_changes(
            base.option_map,
            schema.option_map,
            has_snapshots=latest is not None,
            key_is_free=is_chosen(base.option_map),
            explicit=frozenset(schema.option_map),
            table=table,
        )
    except InvalidOptionError as error:
        reason, _, _ = str(error).removeprefix(f"table {table}: ").partition(";")
        return reason
    return None


def _partition_columns(schema: TableSchema) -> list[tuple[str, object]]:
    return [(field.name, with_nullability(field.type, nullable=True)) for field in schema.partition_fields]


def _with_ids(fields: Iterable[DataField], base: TableSchema) -> tuple[tuple[DataField, ...], int]:
    before = {field.name: field for field in base.fields}
    # Some engines number nested fields separately, so their ids may exceed the highest id in the schema.
    highest = max(base.highest_field_id, highest_field_id(base.fields))
    numbered = []
    for field in fields:
        old = before.get(field.name)
        if old is not None and _keeps_values(old, field):
            kept = with_nullability(old.type, nullable=field.type.nullable)
            numbered.append(replace(field, id=old.id, type=kept))
            continue
        new, highest = next_field(
            field.name, field.type, highest, description=field.description, default_value=field.default_value
        )
        numbered.append(new)
    return tuple(numbered), highest


def _keeps_values(old: DataField, new: DataField) -> bool:
    """Whether values of the old column are values of the new one, without a cast."""
    if old.type.nullable and not new.type.nullable:
        return False
    types = [next_field("", with_nullability(each.type, nullable=True), _NO_COLUMN)[0].type for each in (old, new)]
    return types[0] == types[1]

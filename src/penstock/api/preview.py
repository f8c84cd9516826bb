"""Previews of changes to a table, without making them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.api.arguments import FLAG, LOCATION, NONE, PARTITION, accepts, to_changes, to_location, to_partition
from penstock.api.handle import TableMethods
from penstock.api.rows import ArrowRows, Rows, arrow_rows, fit_rows
from penstock.catalog.checks.features import check_writable
from penstock.catalog.schema_changes import change_stored_schema
from penstock.io.resolve import resolve
from penstock.table.actions.changes import overwrite_scope
from penstock.table.partition_scope import WholeTable
from penstock.table.write.imports import HiveFile, plan_hive_import
from penstock.table.write.preview import Removal, existing_specs, preview_drop, preview_removal

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from penstock.catalog.changes import SchemaChange
    from penstock.format.schema import TableSchema


class TablePreview(TableMethods):
    """Returns the effect of row or schema changes without making them: ``table.preview``."""

    @accepts(partition=PARTITION | NONE)
    def overwrite(
        self,
        rows: Rows,
        *,
        partition: Mapping[str, object] | str | None = None,
    ) -> Removal:
        """Return what ``Table.overwrite`` would remove.

        Args:
            rows: read only if the partitions depend on them; a Spark DataFrame cannot be previewed.
            partition: as for ``Table.overwrite``.
        """
        check_writable(self._handle.ref)
        spec = None if partition is None else to_partition(partition, self._handle.name)
        batches = _batches(arrow_rows(rows, self._handle.ref))
        fitted = fit_rows(self._handle.ref.schema, self._handle.name, batches)
        return preview_removal(
            self._handle.ref, self._handle.checked_store, overwrite_scope(self._handle.ref, spec), fitted
        )

    def truncate(self) -> Removal:
        """Return what ``Table.truncate`` would remove."""
        return preview_removal(self._handle.ref, self._handle.checked_store, WholeTable())

    @accepts(partitions=PARTITION)
    def drop_partitions(self, *partitions: Mapping[str, object] | str) -> Removal:
        """Return what ``Table.drop_partitions`` would remove; raises the same errors."""
        specs = [to_partition(each, self._handle.name) for each in partitions]
        return preview_drop(self._handle.ref, self._handle.checked_store, specs)

    @accepts(partitions=PARTITION, may_miss=FLAG)
    def existing_partitions(
        self, *partitions: Mapping[str, object] | str, may_miss: bool = False
    ) -> tuple[Mapping[str, object], ...]:
        """Return those of the partitions that have rows, for ``Table.drop_partitions``.

        Args:
            may_miss: whether some may be missing.

        Raises:
            NotFoundError: one is missing, and ``may_miss`` is false.
        """
        specs = [to_partition(each, self._handle.name) for each in partitions]
        return existing_specs(self._handle.ref, self._handle.checked_store, specs, may_miss=may_miss)

    def alter(self, *changes: SchemaChange) -> TableSchema:
        """Return the schema that ``Catalog.alter_table`` would write; raises the same errors."""
        ref = self._handle.ref
        return change_stored_schema(
            ref.schema, to_changes(changes, ref.name), table=ref.name, file_io=ref.file_io, location=ref.location
        )

    @accepts(directory=LOCATION)
    def hive_import(self, directory: str | os.PathLike[str]) -> tuple[HiveFile, ...]:
        """List the Parquet files of a Hive-style directory, ``dt=2026-01-01/part-0.parquet``, sorted by path.

        Args:
            directory: path or URI of the parent directory of the partitions.

        Raises:
            NotFoundError: there is no Parquet file below it.
            SchemaMismatchError: the partition columns are not the table's, or a value does not fit the type of its
                column.
        """
        check_writable(self._handle.ref)
        file_io, root = resolve(to_location(directory))
        return plan_hive_import(self._handle.ref, file_io, root)


def _batches(rows: ArrowRows) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        return rows.to_batches()
    return [rows] if isinstance(rows, pa.RecordBatch) else rows

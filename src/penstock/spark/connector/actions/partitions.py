"""Partitions in statements: ``SHOW PARTITIONS``, ``ALTER TABLE ... DROP PARTITION``, ``TRUNCATE TABLE ... PARTITION``.

Source:
    ``SupportsAtomicPartitionManagement`` of Spark. Spark passes a partition as a row of its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.checks.features import check_writable
from penstock.datafile.types import to_arrow_type
from penstock.errors import UnsupportedFeatureError
from penstock.spark.batches import to_spark_batches
from penstock.spark.connector.local_rows import arrow_rows
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import to_literal
from penstock.spark.types import to_catalog_schema, to_spark_schema
from penstock.table.actions.changes import drop_partitions, open_committer
from penstock.table.partition_scope import filter_of_specs

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import JavaObject
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPartition
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


class PartitionManagement(Proxy):
    """The partitions of a table; a mixin of the table's proxy."""

    _ref: TableRef
    _read: PinnedRead
    _store: MetadataStore

    @from_spark
    def partitionSchema(self) -> JavaObject:
        """Return the partition columns; Spark pads the values of CHAR that a statement names."""
        return self._bridge.schema(to_catalog_schema(self._ref.schema.partition_fields))

    @from_spark
    def listPartitionIdentifiers(self, names: JavaObject, values: JavaObject) -> JavaObject:
        """Return the partitions with the given values.

        Args:
            names: partition columns; none for all partitions.
            values: a row with a value for each name.
        """
        fields = {field.name: field for field in self._ref.schema.partition_fields}
        named_fields = [fields[str(name)] for name in names]
        found = self._partitions(self._spec(named_fields, values))
        return arrow_rows(self._bridge, _to_arrow(self._ref, found), _plain_schema(self._ref))

    @from_spark
    def partitionExists(self, ident: JavaObject) -> bool:
        """Whether a partition has rows."""
        return bool(self._partitions(self._spec_of(ident)))

    @from_spark
    def loadPartitionMetadata(self, ident: JavaObject) -> JavaObject:
        """Return the number of files, their bytes and their rows."""
        entries = [entry.file for part in self._partitions(self._spec_of(ident)) for entry in part.entries]
        return self._bridge.java_map(
            {
                "file_count": str(len(entries)),
                "file_size_in_bytes": str(sum(file.file_size for file in entries)),
                "record_count": str(sum(file.row_count for file in entries)),
            }
        )

    @from_spark
    def dropPartitions(self, idents: JavaObject) -> bool:
        """Remove partitions with one commit."""
        specs = [self._spec_of(ident) for ident in idents]
        check_writable(self._ref)
        drop_partitions(open_committer(self._ref, adds_rows=False), specs)
        return True

    def purgePartition(self, ident: JavaObject) -> bool:
        """Refuse ``PURGE``."""
        return self.purgePartitions((ident,))

    @from_spark
    def purgePartitions(self, idents: JavaObject) -> bool:
        """Refuse ``PURGE``: older snapshots still have the files."""
        raise UnsupportedFeatureError(
            f"table {self._ref.name}: DROP PARTITION ... PURGE: files are deleted when the snapshots that have them "
            "expire; leave PURGE out"
        )

    def truncatePartition(self, ident: JavaObject) -> bool:
        """Remove the rows of a partition."""
        return self.dropPartitions((ident,))

    def truncatePartitions(self, idents: JavaObject) -> bool:
        """Remove the rows of partitions with one commit."""
        return self.dropPartitions(idents)

    @from_spark
    def createPartitions(self, idents: JavaObject, properties: JavaObject) -> None:
        """Refuse: partitions without rows do not exist."""
        raise UnsupportedFeatureError(f"table {self._ref.name}: a partition exists where it has rows: insert some")

    @from_spark
    def replacePartitionMetadata(self, ident: JavaObject, properties: JavaObject) -> None:
        """Refuse: partitions have no properties."""
        raise UnsupportedFeatureError(f"table {self._ref.name}: partitions have no properties of their own")

    @from_spark
    def renamePartition(self, old: JavaObject, new: JavaObject) -> bool:
        """Refuse: the values are in the files."""
        raise UnsupportedFeatureError(
            f"table {self._ref.name}: a partition cannot get other values: insert its rows with them, and drop it"
        )

    def _partitions(self, spec: dict[str, object]) -> tuple[ScanPartition, ...]:
        named = filter_of_specs(self._ref, [spec]) if spec else None
        return self._read.plan(self._store, named).partitions

    def _spec_of(self, ident: JavaObject) -> dict[str, object]:
        return self._spec(list(self._ref.schema.partition_fields), ident)

    def _spec(self, fields: list[DataField], row: JavaObject) -> dict[str, object]:
        spec: dict[str, object] = {}
        for place, field in enumerate(fields):
            spark_type = self._bridge.schema(to_spark_schema((field,))).apply(0).dataType()
            value = None if row.isNullAt(place) else row.get(place, spark_type)
            literal = to_literal(value, spark_type.simpleString())
            # A text is the milliseconds of a TIME, as which Spark reads it.
            spec[field.name] = str(literal) if type(literal) is int else literal
        return spec


def _plain_schema(ref: TableRef) -> StructType:
    return to_spark_schema(ref.schema.partition_fields)


def _to_arrow(ref: TableRef, partitions: tuple[ScanPartition, ...]) -> pa.Table:
    """Return the values of partitions, in Spark's types."""
    columns = [
        _column([part.values[place] for part in partitions], field)
        for place, field in enumerate(ref.schema.partition_fields)
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=list(ref.schema.partition_keys))
    schema = _plain_schema(ref)
    return pa.Table.from_batches(to_spark_batches([batch], schema), None if partitions else batch.schema)


def _column(values: list[Any], field: DataField) -> ArrowAny:
    arrow_type = to_arrow_type(field.type)
    if not pa.types.is_timestamp(arrow_type):
        return pa.array(values, arrow_type)
    # Values are nanoseconds, of which 64 bits hold those of the years 1677 to 2262 alone.
    micros = [None if value is None else value // 1000 for value in values]
    return pa.array(micros, pa.timestamp("us", arrow_type.tz))

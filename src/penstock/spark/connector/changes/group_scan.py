"""Scans for a row change: of single rows, or of whole files.

Where files are rewritten by Spark, filters select files, but all rows of the selected files are read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.options import ReadOptions
from penstock.predicate.bind import columns_of
from penstock.predicate.tree import IsNull, Or
from penstock.spark.connector.metadata_column import PLACES
from penstock.spark.connector.proxy import from_spark
from penstock.spark.connector.pushdown import conjunction_of
from penstock.spark.connector.scan import ScanRequest, TableScan, is_padded
from penstock.spark.connector.scan_builder import TableScanBuilder
from penstock.spark.read.native_reading import PADDED
from penstock.table.dml.replacement import ReadFiles
from penstock.table.read.prune import NO_FILTER
from penstock.table.read.split import pack_splits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.scan import TableRead
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef


_MIN_SPLITS: Final = 2
_MIN_PARTITIONS: Final = 2


def check_condition(ref: TableRef, names: Iterable[str]) -> None:
    """Refuse a condition of a change that has columns which say where a row is.

    Args:
        names: of the columns that Spark reads, or writes, because the condition has some of them.
    """
    places = [name for name in PLACES if name in names]
    if places:
        raise UnsupportedFeatureError(
            f"table {ref.name}: the condition of a change of rows cannot have {places[0]}: let a query in it, which "
            "has it, return the keys of the rows, as in WHERE key IN (SELECT key ...)"
        )


class ChangeScanBuilder(TableScanBuilder):
    """Collects the filters of a change, and builds its scan.

    Args:
        made: called with the scan.
        kind: makes the scan.
    """

    def __init__(
        self,
        made: Callable[[ChangeScan], None],
        kind: Callable[[Bridge, ScanRequest], ChangeScan],
        bridge: Bridge,
        spark: SparkSession,
        read: TableRead,
        schema: StructType,
    ) -> None:
        # Rows of a fallback branch are read, but changed only in that branch.
        super().__init__(bridge, spark, read.without_fallback(), schema)
        self._made = made
        self._kind = kind
        # In Spark's plan of an UPDATE or a MERGE, constants are padded, but not the values that are read.
        self._pads = is_padded(spark)

    @from_spark
    def supportCompletePushDown(self, aggregation: JavaObject) -> bool:
        """Return false: the rows are needed."""
        return False

    def pushAggregation(self, aggregation: JavaObject) -> bool:
        """Take none."""
        return False

    def pushLimit(self, limit: int) -> bool:
        """Take none."""
        return False

    def pushTopN(self, orders: JavaObject, limit: int) -> bool:
        """Take none."""
        return False

    def _scan(self) -> ChangeScan:
        scan = self._kind(self._bridge, self._request())
        self._made(scan)
        return scan


class ChangeScan(TableScan):
    """A scan of the rows that may change, each with its position: the file, and the number of the row in it."""

    def read_files(self) -> ReadFiles:
        """Return the files that the scan reads, at most."""
        request = self._request
        point = request.read.pinned.point
        return ReadFiles(
            snapshot=None if point is None else point.snapshot,
            predicate=conjunction_of(request.pushed),
            splits=self._splits_read(),
        )

    def _splits_read(self) -> tuple[DataSplit, ...]:
        return self._files.splits

    def partition_count(self) -> int:
        """Return the number of partitions whose files the scan reads, before runtime filters."""
        return len({split.partition for split in self._files.splits})

    @from_spark
    def filterAttributes(self) -> JavaObject:
        """Return the columns by which a query before the scan may find the files with rows to change.

        That query reads the columns of the condition, so it is useful only if it can exclude some of the files. Spark
        fails to plan it for a condition on values that it pads.
        """
        options = self._request.read.pinned.ref.parsed(ReadOptions)
        if len(tuple(pack_splits(self._files.splits, options))) < _MIN_SPLITS or self._files.reading == PADDED:
            return self._bridge.references(())
        keys = self._request.read.pinned.ref.schema.partition_keys
        without = frozenset(keys if self.partition_count() < _MIN_PARTITIONS else ())
        return self._bridge.references(name for name in self._laid_out() if name not in without)

    @from_spark
    def filter(self, predicates: JavaObject) -> None:
        """Take the runtime filters, but keep NULL, which is not in the lists of values that Spark has found.

        An excluded file counts as having no matching row, so a MERGE would insert the row a second time.
        """
        super().filter(predicates)
        self._runtime = tuple(
            replace(
                each,
                predicate=Or(
                    operands=(
                        each.predicate,
                        *(IsNull(column=name) for name in dict.fromkeys(columns_of(each.predicate))),
                    )
                ),
            )
            for each in self._runtime
        )


class GroupScan(ChangeScan):
    """A scan of all rows of the files in which rows may change."""

    def __init__(self, bridge: Bridge, request: ScanRequest) -> None:
        check_condition(request.read.ref, request.metadata.fieldNames())
        # Readers must not skip row groups either.
        pushed = tuple(replace(each, is_for_files=False) for each in request.pushed)
        super().__init__(bridge, replace(request, pushed=pushed, limit=None))
        self._scanned: tuple[DataSplit, ...] | None = None

    def _splits_read(self) -> tuple[DataSplit, ...]:
        return self._files.splits if self._scanned is None else self._scanned

    def partitions_of(self, splits: Sequence[DataSplit]) -> tuple[JavaObject, JavaObject]:
        """Return the partitions and their reader factory."""
        self._scanned = tuple(splits)
        return super().partitions_of([replace(split, rest=NO_FILTER) for split in splits])

    def _text(self) -> str:
        return f"{super()._text()} whole files for {id(self)}"

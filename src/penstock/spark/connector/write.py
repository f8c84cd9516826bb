"""Write to a table through a Spark catalog; the commit is the same as in ``Table.append`` and ``overwrite``.

Source:
    ``V1Write`` of Spark: it provides the rows as a DataFrame that has not run yet, so Spark's own writer can be used.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from penstock.catalog.checks.features import check_writable
from penstock.errors import UnsupportedFeatureError
from penstock.format.row.row import decode_row
from penstock.options import KNOWN_KEYS, Side, check_batch, check_keys, check_side
from penstock.predicate.bind import bind
from penstock.predicate.tree import TRUE, And, Compare, IsNull, SignedZero
from penstock.printable import open_log
from penstock.spark.compact.job import merge_on_executors
from penstock.spark.connector.actions.dynamic_overwrite import DynamicOverwrite
from penstock.spark.connector.gateway import schema_of
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import take_filters
from penstock.spark.connector.stream.table_write import StreamTableWrite, interrupted_by_stop
from penstock.spark.write.native_sink import why_configured, writer_text
from penstock.spark.write.sink import write_dataframe
from penstock.table.compact.write import TableWrite
from penstock.table.partition_scope import MatchingPartitions, OverwriteScope, WholeTable, WrittenPartitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.predicate.tree import Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.connector.stream.table_write import StreamSinks
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

KeepFiles: TypeAlias = "Callable[[TableRef, tuple[CommitMessage, ...]], None]"
"""Takes a table with the options of a write, and the files that were written."""

_LOG: Final = open_log(__name__)
_WRITE: Final = "org.apache.spark.sql.connector.write."
# Options of every streaming query.
_SPARK_OPTIONS: Final = frozenset({"checkpointlocation", "path", "queryname"})
_SPELLING: Final = {key.lower(): key for key in sorted(KNOWN_KEYS)}


def own_options(bridge: Bridge, options: JavaObject) -> dict[str, str]:
    """Return the options of one read or write with the original case of the keys, which Spark's map loses."""
    spark_options = json.loads(bridge.driver.options(options))
    return {_SPELLING.get(key.lower(), key): value for key, value in spark_options.items()}


def partition_scope(
    bridge: Bridge, ref: TableRef, predicates: JavaObject, *, names_partitions: bool = False
) -> OverwriteScope | None:
    """Return the scope of a condition; None if it may match only some rows of a partition.

    Args:
        names_partitions: the condition names partitions by their values, as ``PARTITION (...)`` does, so that it also
            counts for types whose values Spark may show in another way, such as CHAR.
    """
    taken = take_filters(bridge, ref, predicates)
    if not taken:
        return WholeTable()
    exact = [
        each.predicate
        for each in taken
        if each is not None
        and (each.is_exact or each.predicate == TRUE or (names_partitions and each.is_of_partitions))
    ]
    if len(exact) < len(taken):
        return None
    if all(each == TRUE for each in exact):
        return WholeTable()
    condition = And(operands=tuple(map(_of_zero, exact) if names_partitions else exact))
    return MatchingPartitions(predicate=bind(condition, ref.schema.partition_fields, ref.name))


def _of_zero(condition: Predicate) -> Predicate:
    """Return the condition of ``PARTITION (...)``, which Spark makes by ``<=>``, so that a zero is that of its sign."""
    match condition:
        case And(operands=(IsNull() as known, Compare(value=float(zero)) as same)) if zero == 0:
            return And(operands=(known, replace(same, value=SignedZero(zero))))
        case _:
            return condition


class TableWriteBuilder(Proxy):
    """Collects the overwrite scope of a write.

    Args:
        keep: receives the files of the rows, which are not committed then.
        sinks: the streaming queries that write to the table; None for a table that takes none.
    """

    interfaces: ClassVar = (
        f"{_WRITE}SupportsOverwriteV2",
        f"{_WRITE}SupportsDynamicOverwrite",
        # So that Spark leaves it to us to refuse this output mode, with a cure.
        "org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend",
    )

    def __init__(
        self,
        bridge: Bridge,
        spark: SparkSession,
        ref: TableRef,
        info: JavaObject,
        *,
        keep: KeepFiles | None = None,
        sinks: StreamSinks | None = None,
    ) -> None:
        super().__init__(bridge, f"{ref.name} {info.queryId()}")
        self._keep = keep
        self._sinks = sinks
        self._own = {
            key: value for key, value in own_options(bridge, info.options()).items() if key not in _SPARK_OPTIONS
        }
        check_keys(self._own, table=ref.name)
        self._ref = ref.with_options(self._own)
        self._spark = spark
        self._columns = schema_of(info.schema())
        self._scope: OverwriteScope | None = None
        self._is_dynamic = False

    @from_spark
    def canOverwrite(self, predicates: JavaObject) -> bool:
        """Return true, or raise where a condition may match some rows of a partition; Spark's error has no cure."""
        if self._scope_of(predicates) is None:
            keys = self._ref.schema.partition_keys
            raise UnsupportedFeatureError(
                f"table {self._ref.name}: a write replaces whole partitions, so its condition compares partition "
                f"columns with constants ({', '.join(keys) or 'the table has no partition columns'}); to replace other "
                "rows, DELETE them, then INSERT"
            )
        return True

    @from_spark
    def overwrite(self, predicates: JavaObject) -> JavaObject:
        """Replace the partitions that a condition covers."""
        self._scope = self._scope_of(predicates)
        return self

    @from_spark
    def truncate(self) -> JavaObject:
        """Replace all rows."""
        self._scope = WholeTable()
        return self

    @from_spark
    def overwriteDynamicPartitions(self) -> JavaObject:
        """Replace the partitions that the rows belong to; all rows of a table without partitions."""
        self._scope = WrittenPartitions() if self._ref.schema.partition_keys else WholeTable()
        self._is_dynamic = True
        return self

    def _scope_of(self, predicates: JavaObject) -> OverwriteScope | None:
        return partition_scope(self._bridge, self._ref, predicates, names_partitions=True)

    @from_spark
    def build(self) -> JavaObject:
        """Return the write."""
        check_writable(self._ref)
        if self._is_dynamic and self._scope is not None:
            check_batch(self._own, self._ref.name, Side.SINK)
            return DynamicOverwrite(self._bridge, self._spark, self._ref, self._columns, self._scope)
        return CatalogWrite(self._bridge, self._ref, self._writer_text, self._for_batch, self._for_stream)

    def _writer_text(self) -> str:
        text = writer_text(self._columns, self._ref, partial(why_configured, self._bridge.session()))
        return text if text.startswith("by Python") else f"{text} unless the query observes metrics"

    def _for_batch(self) -> RowTarget:
        check_batch(self._own, self._ref.name, Side.SINK)
        return RowTarget(self._bridge, self._ref, self._scope, self._keep)

    def _for_stream(self) -> StreamTableWrite:
        assert self._sinks is not None  # noqa: S101 - tables without them do not claim to take streams
        check_side(self._own, self._ref.name, Side.SINK)
        with interrupted_by_stop(self._bridge):
            return StreamTableWrite(self._bridge, self._sinks.open(self._ref), self._ref, self._columns)


class CatalogWrite(Proxy):
    """One write, as Spark plans it.

    Args:
        ref: the table.
        writer: says who writes the rows.
        for_batch: makes the target of the rows of a batch write.
        for_stream: makes the write of a micro-batch.
    """

    interfaces: ClassVar = (f"{_WRITE}V1Write",)

    def __init__(
        self,
        bridge: Bridge,
        ref: TableRef,
        writer: Callable[[], str],
        for_batch: Callable[[], RowTarget],
        for_stream: Callable[[], StreamTableWrite],
    ) -> None:
        super().__init__(bridge, lambda: f"{ref.name} {writer()} {id(self)}")
        self._ref = ref
        self._for_batch = for_batch
        self._for_stream = for_stream

    @from_spark
    def toInsertableRelation(self) -> JavaObject:
        """Return the relation that takes the rows."""
        return self._bridge.driver.insertable(self._for_batch().exposed())

    def description(self) -> str:
        """Return the name of the table."""
        return self._ref.name

    @from_spark
    def toStreaming(self) -> StreamTableWrite:
        """Return the write of a micro-batch."""
        return self._for_stream()


class RowTarget(Proxy):
    """Receives the rows of a write and commits them, or hands their files over."""

    interfaces: ClassVar = ("org.apache.spark.sql.sources.InsertableRelation",)
    rethrows: ClassVar = True

    def __init__(
        self, bridge: Bridge, ref: TableRef, scope: OverwriteScope | None, keep: KeepFiles | None = None
    ) -> None:
        super().__init__(bridge, f"{ref.name} replaces {scope}")
        self._ref = ref
        self._scope = scope
        self._keep = keep

    @from_spark
    def insert(self, rows: JavaObject, overwrite: bool) -> None:  # noqa: FBT001 - Spark's signature
        """Write and commit rows that have the table's columns, in the table's order."""
        ref = self._ref
        session: SparkSession = self._bridge.python_session(rows.sparkSession())
        frame = DataFrame(rows, session).toDF(*(field.name for field in ref.schema.fields))
        is_staged = self._keep is not None
        messages = write_dataframe(frame, ref, is_staged=is_staged)
        names = null_partitions(ref, messages)
        if names:
            _LOG.warning(
                "table %s: all rows of this write have NULL in %s, a partition column: if the column list left it out, "
                "delete these rows and name it; of a column that is NOT NULL, such writes are refused",
                *(ref.name, ", ".join(names)),
            )
        write = TableWrite(ref=ref, merge_on=merge_on_executors(session, is_staged=is_staged))
        if self._keep is None:
            write.commit(messages, self._scope)
        else:
            self._keep(ref, write.merge(messages))


def null_partitions(ref: TableRef, messages: tuple[CommitMessage, ...]) -> tuple[str, ...]:
    """Return the partition columns that are NULL in all rows of a write, as where an INSERT does not name them."""
    fields = ref.schema.partition_fields
    types = [field.type for field in fields]
    rows = [decode_row(message.partition, types) for message in messages if message.new_files]
    return tuple(field.name for place, field in enumerate(fields) if rows and all(row[place] is None for row in rows))

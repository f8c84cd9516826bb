"""Tables in sessions of Spark Connect on servers without catalogs of Penstock, through ``format("penstock")``.

Names, snapshots and filters are resolved in this process, which reads the table's metadata from storage; Spark gets the
location and options. The Python of the server needs Penstock, and its access to the storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock import errors
from penstock.errors import InvalidFilterError, TableStoreError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.options import CommitOptions, ReadOptions
from penstock.predicate.bind import bind
from penstock.predicate.text import format_filter
from penstock.spark.compact.job import OURS, spark_cause
from penstock.spark.data_source.transaction import Transaction
from penstock.spark.read.filters import to_column
from penstock.spark.stream.sink import check_fits, check_request, with_request
from penstock.spark.types import nullable, to_spark_schema, to_spark_type
from penstock.spark.versions.facts import PYTHON_SOURCES, STREAM_READS_OF_FORMAT, STREAM_WRITES_OF_FORMAT
from penstock.table.actions.changes import overwrite_scope
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.put import search_commits
from penstock.table.partition_scope import WholeTable, WrittenPartitions, filter_of_specs
from penstock.table.read.batches import select_fields
from penstock.table.read.query import pin_read
from penstock.table.read.travel import POSITION_KEYS
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream_sink.committer import Batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import BoundPredicate, Predicate
    from penstock.spark.stream.micro_batches import StreamWrite
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_FORMAT: Final = "penstock"
_NO_WATERMARK: Final = "penstock.read.watermark"


def read_pinned(
    spark: SparkSession,
    ref: TableRef,
    store: MetadataStore,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
) -> DataFrame:
    """Return the rows of the state that the table's options select, which is fixed now.

    Args:
        columns: column names, in the order of the result; None for all.
        predicate: prunes files, and is applied to the rows.

    Raises:
        UnsupportedFeatureError: the options select a state that has no name; or an old version of Spark.
    """
    PYTHON_SOURCES.check(f"table {ref.name}")
    _check_place(ref)
    pinned = pin_read(ref, store)
    point, read = pinned.point, pinned.ref
    if pinned.fallback is not None or (point is not None and point.created_from_millis is not None):
        raise UnsupportedFeatureError(
            f"table {ref.name}: this state has no id, which Spark Connect needs to read it in each action: give "
            "'scan.snapshot-id', and an empty 'scan.fallback-branch'; or read with to_arrow"
        )
    bound = None if predicate is None else bind(predicate, read.schema.fields, ref.name)
    if point is not None and point.snapshot is None:
        frame = spark.createDataFrame([], nullable(to_spark_schema(read.schema.fields)))
        return _chosen(frame, read, columns)
    options = dict(ref.dynamic_options)
    stored = read.schema
    position = read.parsed(ReadOptions)
    if point is not None and point.snapshot is not None and position.tag_name is None and position.version is None:
        options = {key: value for key, value in options.items() if key not in POSITION_KEYS}
        options |= {"scan.mode": "from-snapshot", "scan.snapshot-id": str(point.snapshot.id)}
        stored = (
            read.schema if point.snapshot.schema_id == read.schema.id else store.load_schema(point.snapshot.schema_id)
        )
    reader = spark.read.format(_FORMAT).options(**_with_storage(ref, options))
    if stored.fields == read.schema.fields:
        return _chosen(_load(reader, ref, predicate, bound), read, columns)
    frame = _at_schema(reader.load(ref.location), ref.name, stored, read.schema)
    return _chosen(frame if bound is None else frame.where(to_column(bound)), read, columns)


def append_rows(frame: DataFrame, ref: TableRef, store: MetadataStore) -> Snapshot | None:
    """Append the rows of a DataFrame in one commit, on the server; None if there are none."""
    return _write(frame, ref, store, "append", {})


def overwrite_rows(
    frame: DataFrame, ref: TableRef, store: MetadataStore, partition: Mapping[str, object] | None
) -> Snapshot | None:
    """Replace rows by those of a DataFrame in one commit, on the server.

    Args:
        partition: as for ``overwrite_scope``.
    """
    match overwrite_scope(ref, partition):
        case WholeTable():
            options = {"partitionOverwriteMode": "static"}
        case WrittenPartitions():
            options = {"partitionOverwriteMode": "dynamic"}
        case _:
            options = {"replaceWhere": format_filter(filter_of_specs(ref, [partition or {}]))}
    return _write(frame, ref, store, "overwrite", options)


def _write(
    frame: DataFrame, ref: TableRef, store: MetadataStore, mode: str, options: Mapping[str, str]
) -> Snapshot | None:
    PYTHON_SOURCES.check(f"table {ref.name}")
    _check_place(ref)
    check_fits(frame.schema, ref)
    base_id = store.latest_snapshot_id() or 0
    user = new_commit_user(ref.parsed(CommitOptions).user_prefix)
    # A client that loses its server runs the write again on the next one: the commit user finds what is committed.
    transaction = Transaction(batch=Batch(commit_user=user, id=0), after_id=base_id)
    given = {**_with_storage(ref, dict(ref.dynamic_options)), **options, **transaction.options()}
    try:
        frame.write.format(_FORMAT).mode(mode).options(**given).save(ref.location)
    except PySparkException as error:
        raise _own(error) from error
    latest_id = store.latest_snapshot_id() or 0
    return search_commits(store, lambda each: each.commit_user == user, latest_id=latest_id, after_id=base_id).last


def read_stream(
    spark: SparkSession,
    ref: TableRef,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that match the filter, without the watermark of the table.

    Args:
        columns: column names, in the order of the result; None for all.

    Raises:
        UnsupportedFeatureError: the table declares a watermark, and the options do not leave it out.
    """
    STREAM_READS_OF_FORMAT.check(f"table {ref.name}")
    _check_place(ref)
    options = dict(ref.dynamic_options)
    if options.get(_NO_WATERMARK, "true").lower() != "false" and usable_watermark(ref) is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}: a stream of Spark Connect does not get the watermark that the table declares: give "
            f"'{_NO_WATERMARK}' = 'false', and call withWatermark"
        )
    reader = spark.readStream.format(_FORMAT).options(**_with_storage(ref, options))
    bound = None if predicate is None else bind(predicate, ref.schema.fields, ref.name)
    return _chosen(_load(reader, ref, predicate, bound), ref, columns)


def write_stream(sdf: DataFrame, ref: TableRef, request: StreamWrite) -> StreamingQuery:
    """Start a query that commits each micro-batch exactly once, with the guarantees of the format."""
    STREAM_WRITES_OF_FORMAT.check(f"table {ref.name}")
    _check_place(ref)
    check_request(sdf, ref, request)
    check_fits(sdf.schema, ref)
    writer = sdf.writeStream.format(_FORMAT).options(**_with_storage(ref, dict(ref.dynamic_options)))
    return with_request(writer, request).start(ref.location)


def _check_place(ref: TableRef) -> None:
    """Refuse tables that the format cannot load from their location."""
    server = ref.file_io.snapshot_commit.server
    if server is None and ref.file_io.main is ref.file_io:
        return
    what = "it is a branch" if server is None else "its catalog is a server"
    raise UnsupportedFeatureError(
        f"table {ref.name}: Spark Connect gets only the location of a table, and {what}: read with to_arrow, and write "
        "rows.toArrow()"
    )


def _with_storage(ref: TableRef, options: dict[str, str]) -> dict[str, str]:
    """Return options together with those of the catalog for its storage, which the server may not have."""
    return {**ref.file_io.storage_options(), **options}


def _load(
    reader: DataFrameReader | DataStreamReader, ref: TableRef, predicate: Predicate | None, bound: BoundPredicate | None
) -> DataFrame:
    if predicate is None or bound is None:
        return reader.load(ref.location)
    try:
        return reader.option("filter", format_filter(predicate)).load(ref.location)
    except InvalidFilterError:  # numbers of Arrow have no text
        return reader.load(ref.location).where(to_column(bound))


def _own(error: PySparkException) -> Exception:
    """Return the error of Penstock on the server; the given one if it has another cause."""
    name, _, message = spark_cause(error).removeprefix(OURS).partition(": ")
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, TableStoreError) else error


def _chosen(frame: DataFrame, ref: TableRef, columns: Sequence[str] | None) -> DataFrame:
    return frame if columns is None else frame.select(*(quoted(field.name) for field in select_fields(ref, columns)))


def _at_schema(frame: DataFrame, table: str, stored: TableSchema, wanted: TableSchema) -> DataFrame:
    """Return rows of a snapshot with the columns that the table has got since, found by their ids."""
    before = {field.id: field for field in stored.fields}
    columns = []
    for field in wanted.fields:
        kind, old = to_spark_type(field.type), before.get(field.id)
        if old is None:
            column = F.lit(None).cast(kind)
        elif to_spark_type(old.type) == kind:
            column = F.col(quoted(old.name))
        else:
            raise UnsupportedFeatureError(
                f"table {table}: the type of column '{field.name}' was changed after the latest snapshot: append rows "
                "first, or read with to_arrow"
            )
        columns.append(column.alias(field.name))
    return frame.select(*columns)

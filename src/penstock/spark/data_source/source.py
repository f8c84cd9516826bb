"""``format("penstock")``: batch reads and writes, streams and SQL through Spark's own API.

Source:
    PySpark's Python Data Source API; for a table created by ``CREATE TABLE ... USING penstock OPTIONS (path ...)`` only
    ``schema()`` receives the options, so the location is passed on in the metadata of a column (``table_names``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.catalog.checks.features import check_writable
from penstock.catalog.place import load_location
from penstock.errors import InvalidOptionError, OptionWarning, SchemaMismatchError, UnsupportedFeatureError
from penstock.options import KNOWN_KEYS, Side, check_batch, check_keys, check_side
from penstock.options.object_store import store_options
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And
from penstock.spark.batches import to_spark_batches
from penstock.spark.data_source.filters import take_filters, warn_of_all_files
from penstock.spark.data_source.overwrite import OVERWRITE_OPTIONS, OverwriteRule, check_no_overwrite, session_mode
from penstock.spark.data_source.stream_reader import PenstockStreamReader
from penstock.spark.data_source.stream_writer import PenstockStreamWriter
from penstock.spark.data_source.table_names import find_source, find_target, has_location, with_location
from penstock.spark.data_source.tracebacks import without_frames
from penstock.spark.data_source.transaction import TRANSACTION_OPTIONS, Transaction, check_no_transaction
from penstock.spark.shared_storage import mark_storage
from penstock.spark.types import check_columns, columns_at_start, nullable, to_spark_schema, why_rows_may_not_fit
from penstock.spark.versions.facts import PYTHON_SOURCES, STREAM_READS_OF_FORMAT, STREAM_WRITES_OF_FORMAT
from penstock.spark.versions.python_api import datasource
from penstock.spark.write.sink import collect_messages
from penstock.spark.write.task import TaskOutcome, WriteTask, delete_failed_job
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.compact.write import TableWrite, compact_written
from penstock.table.inspect.system import SYSTEM_TABLES, load_system_table
from penstock.table.read.batches import TableReader, select_fields
from penstock.table.read.query import plan_query, read_ref
from penstock.table.read.split import DataSplit, plan_splits
from penstock.table.read.travel import translate_as_of
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.committer import commit_unnoted
from penstock.table.write.writer import new_job_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef

_FILTER: Final = "filter"
# Options of Spark, and options that this module reads; all others are options of the table.
_OWN_OPTIONS: Final = (
    frozenset({"path", "location", "paths", "checkpointlocation", _FILTER}) | OVERWRITE_OPTIONS | TRANSACTION_OPTIONS
)
# PySpark passes option names in lower case.
_SPELLING: Final = {key.lower(): key for key in sorted(KNOWN_KEYS)}


class PenstockDataSource(datasource.DataSource):
    """The data source of ``format("penstock")``, as Spark finds it by itself and as Spark Connect uses it."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "penstock"

    @without_frames
    def schema(self) -> StructType:
        """Return the columns of the table, or of the system table, that the options name."""
        location = _location(self.options)
        if location is None:
            raise InvalidOptionError(
                "format 'penstock' needs the table's location: load('<path>'), save('<path>'), or OPTIONS (path "
                "'<path>')"
            )
        location, system_table = _split_location(location)
        # Spark does not say whether this is a batch read or a stream. A stream refuses time travel when its reader is
        # created.
        ref = _load(location, self.options, is_read=True)
        if system_table is not None:
            return from_arrow_schema(load_system_table(system_table, ref, MetadataStore(ref)).schema)
        return with_location(nullable(to_spark_schema(columns_at_start(ref).schema.fields)), location)

    @without_frames
    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        """Return the reader of a batch query."""
        location, system_table = _split_location(_location(self.options) or find_source(schema))
        ref = _load(location, self.options, is_read=True, is_checked=has_location(schema))
        if system_table is not None:
            return SystemTableReader(ref, system_table)
        check_no_overwrite(ref, self.options, "a read")
        check_no_transaction(ref.name, self.options, "a read")
        check_batch(dict(ref.dynamic_options), _user_of(ref), Side.SOURCE)
        return TableSourceReader(ref, schema, self.options.get(_FILTER))

    @without_frames
    def streamReader(self, schema: StructType) -> PenstockStreamReader:  # noqa: N802 - PySpark's name
        """Return the source of a streaming query."""
        location, system_table = _split_location(_location(self.options) or find_source(schema))
        if system_table is not None:
            raise InvalidOptionError(
                f"table {location}${system_table} shows metadata as it is now: it cannot be read as a stream, read it "
                "with spark.read"
            )
        text = self.options.get(_FILTER)
        ref = _load(location, self.options, is_checked=has_location(schema))
        STREAM_READS_OF_FORMAT.check(f"table {ref.name}")
        check_no_overwrite(ref, self.options, "a stream")
        check_no_transaction(ref.name, self.options, "a stream")
        check_side(dict(ref.dynamic_options), _user_of(ref), Side.SOURCE)
        return PenstockStreamReader(
            ref=ref,
            schema=schema,
            predicate=None if text is None else parse_filter(text),
            # For a name in Spark's catalog, the columns were chosen when that table was created.
            is_inferred=_location(self.options) is not None and has_location(schema),
        )

    @without_frames
    def streamWriter(self, schema: StructType, overwrite: bool) -> PenstockStreamWriter:  # noqa: FBT001, N802 - as above
        """Return the sink of a streaming query."""
        location, system_table = _split_location(_location(self.options) or find_target(schema))
        ref = _load(location, self.options)
        if system_table is not None:
            raise InvalidOptionError(f"table {ref.name}${system_table} shows metadata; it cannot be written")
        STREAM_WRITES_OF_FORMAT.check(f"table {ref.name}")
        check_no_overwrite(ref, self.options, "a stream")
        check_no_transaction(ref.name, self.options, "a stream")
        check_side(dict(ref.dynamic_options), _user_of(ref), Side.SINK)
        check_writable(ref)
        return PenstockStreamWriter(ref, overwrite=overwrite)

    @without_frames
    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceArrowWriter:  # noqa: FBT001 - PySpark's signature
        """Return the writer of ``df.write`` and ``INSERT``."""
        location, system_table = _split_location(_location(self.options) or find_target(schema))
        ref = _load(location, self.options)
        if system_table is not None:
            raise InvalidOptionError(f"table {ref.name}${system_table} shows metadata; it cannot be written")
        check_batch(dict(ref.dynamic_options), _user_of(ref), Side.SINK)
        check_writable(ref)
        rule = OverwriteRule.of(ref, self.options, overwrite=overwrite)
        note = "" if _location(self.options) else why_rows_may_not_fit(ref, schema)
        transaction = Transaction.of(self.options, ref.name)
        return TableSourceWriter(ref, replaces=rule if overwrite else None, transaction=transaction, note=note)


class BatchDataSource(PenstockDataSource):
    """The data source in a session whose driver runs streams itself: it refuses them with the calls to use."""

    @without_frames
    def streamReader(self, schema: StructType) -> PenstockStreamReader:  # noqa: N802 - PySpark's name
        """Refuse."""
        location = _location(self.options) or find_source(schema)
        raise UnsupportedFeatureError(
            f"table {location}: in this session, read the stream with Table.at('{location}').read_stream(spark), or "
            "with spark.readStream.table('penstock.<database>.<table>') after penstock.attach(spark, '<warehouse>'); "
            "readStream.format('penstock') is for Spark Connect"
        )

    @without_frames
    def streamWriter(self, schema: StructType, overwrite: bool) -> PenstockStreamWriter:  # noqa: FBT001, N802, ARG002 - as above
        """Refuse."""
        location = _location(self.options) or find_target(schema)
        raise UnsupportedFeatureError(
            f"table {location}: in this session, write the stream with Table.at('{location}').write_stream(df, "
            "checkpoint='<path>'), or with writeStream.toTable('penstock.<database>.<table>') after "
            "penstock.attach(spark, '<warehouse>'), which guarantee more; writeStream.format('penstock') is for Spark "
            "Connect"
        )


def register_format(spark: SparkSession, source: type[PenstockDataSource]) -> None:
    """Make the format known to a session."""
    PYTHON_SOURCES.check("Penstock")
    try:
        spark.dataSource.register(source)
    except AnalysisException as error:
        # Spark 4.0 has found the format by itself, and keeps what it has found.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise


@dataclass
class SplitPartition(datasource.InputPartition):
    """The files of one task."""

    split: DataSplit


class PushFilters:
    """The method ``pushFilters`` of a reader: records filters for pruning, and leaves all filters to Spark.

    It pretends to be the inherited method of PySpark's class, as in a reader that does not override it. If
    ``spark.sql.python.filterPushdown.enabled`` is false, as it is by default, Spark rejects readers that override the
    method; such a session reads without pruning.

    Source:
        ``pyspark.sql.worker.plan_data_source_read``, ``is_pushdown_implemented``.
    """

    __func__ = staticmethod(getattr(datasource.DataSourceReader, "pushFilters", take_filters))

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self.pushed: Predicate | None = None
        self.was_called = False

    def __call__(self, filters: list[datasource.Filter]) -> list[datasource.Filter]:
        """Record the filters that have equivalent predicates, and return all filters."""
        self.was_called = True
        self.pushed = take_filters(self._ref, filters)
        return filters


class TableSourceReader(datasource.DataSourceReader):
    """Reads the columns in ``schema``.

    Args:
        filter_text: a WHERE condition that prunes partitions, buckets and files, and is applied to the rows.
    """

    def __init__(self, ref: TableRef, schema: StructType, filter_text: str | None) -> None:
        store = MetadataStore(ref)
        self._ref = read_ref(ref, store)
        self._columns = tuple(schema.fieldNames())
        self._filter = filter_text
        check_columns(self._ref, schema)
        self._schema = nullable(to_spark_schema(select_fields(self._ref, self._columns)))
        self._push_filters = PushFilters(self._ref)
        self.pushFilters = self._push_filters  # type: ignore[method-assign] # see PushFilters

    @without_frames
    def partitions(self) -> list[datasource.InputPartition]:
        """Plan the read: one task per split."""
        filter_option = () if self._filter is None else (parse_filter(self._filter),)
        pushed = () if self._push_filters.pushed is None else (self._push_filters.pushed,)
        predicate = And(operands=(*filter_option, *pushed)) if filter_option or pushed else None
        query = plan_query(self._ref, MetadataStore(self._ref), predicate, with_vectors=True)
        splits = plan_splits(query.ref, query.plan)
        if predicate is None and not self._push_filters.was_called:
            warn_of_all_files(query.ref.name, sum(len(split.files) for split in splits))
        # For an empty list, Spark creates one partition without a value.
        return [SplitPartition(split) for split in splits] or [datasource.InputPartition(None)]

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""
        if not isinstance(partition, SplitPartition):
            return
        reader = TableReader(self._ref, MetadataStore(self._ref), self._columns)
        yield from to_spark_batches(reader.read_split(partition.split), self._schema)


class SystemTableReader(datasource.DataSourceReader):
    """Reads a system table in one task."""

    def __init__(self, ref: TableRef, name: str) -> None:
        self._ref = ref
        self._name = name

    def read(self, partition: datasource.InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - PySpark's signature
        """Yield the rows."""
        store = MetadataStore(self._ref)
        table = load_system_table(self._name, self._ref, store)
        yield from to_spark_batches(table.to_batches(), from_arrow_schema(table.schema))


@dataclass
class OutcomeMessage(datasource.WriterCommitMessage):
    """Result that one task sends to ``commit``.

    Attributes:
        overwrite_mode: the session's mode, which ``commit`` cannot read.
    """

    outcome: TaskOutcome
    overwrite_mode: str | None


class TableSourceWriter(datasource.DataSourceArrowWriter):
    """Writes files in the tasks and commits on the driver.

    Args:
        replaces: rule for the rows that an overwrite replaces; None for an append.
        transaction: identity of the write; None if it has none.
        note: text added to the error if rows do not fit the table.
    """

    def __init__(
        self,
        ref: TableRef,
        *,
        replaces: OverwriteRule | None,
        transaction: Transaction | None = None,
        note: str = "",
    ) -> None:
        self._task = WriteTask(ref=ref, job_id=new_job_id(), storage=mark_storage(ref))
        self._replaces = replaces
        self._transaction = transaction
        self._note = note

    def write(self, iterator: Iterator[pa.RecordBatch]) -> datasource.WriterCommitMessage:  # type: ignore[override] # PySpark's own classes differ so too
        """Write the rows of one task."""
        return OutcomeMessage(self._task.run(iterator), session_mode())

    @without_frames
    def commit(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Commit the rows of all tasks as one snapshot."""
        ref = self._task.ref
        done = [cast("OutcomeMessage", message) for message in messages if message is not None]
        try:
            files = collect_messages(ref, [each.outcome for each in done], self._task.job_id, None)
        except SchemaMismatchError as error:
            raise (SchemaMismatchError(f"{error}. {self._note}") if self._note else error) from None
        mode = next((each.overwrite_mode for each in done if each.overwrite_mode), None)
        scope = None if self._replaces is None else self._replaces.scope_in(mode)
        if self._transaction is None:
            TableWrite(ref=ref).commit(files, scope)
            return
        files = TableWrite(ref=ref).merge(files)
        user = self._transaction.batch.commit_user
        commit_unnoted(ref, self._transaction.batch, files, scope=scope, after_id=self._transaction.after_id)
        if scope is None:
            compact_written(ref, files, commit_user=f"{user}-compact")

    def abort(self, messages: list[datasource.WriterCommitMessage | None]) -> None:
        """Delete the files that the tasks of a failed job have written."""
        if None not in messages:
            # All tasks succeeded, so the commit failed. Only the commit knows which files may be live: delete none.
            return
        for message in messages:
            if isinstance(message, OutcomeMessage):
                delete_new_files(self._task.ref, message.outcome.messages)
        delete_failed_job(self._task.ref, self._task.job_id)


def _load(location: str, options: Mapping[str, str], *, is_read: bool = False, is_checked: bool = False) -> TableRef:
    """Load the table with the given options.

    Args:
        is_read: batch reads may have Delta Lake's time travel options.
        is_checked: ``schema()`` has warned of unknown options, perhaps in another process.
    """
    storage = store_options({_SPELLING.get(key, key): value for key, value in options.items()})
    ref = load_location(location, storage)
    spelled_options = {_SPELLING.get(key, key): value for key, value in options.items() if key not in _OWN_OPTIONS}
    own = {key: value for key, value in spelled_options.items() if key not in storage}
    own = translate_as_of(own, ref.name) if is_read else own
    with warnings.catch_warnings():
        if is_checked:  # for refusals only
            warnings.simplefilter("ignore", OptionWarning)
        check_keys(own, table=_user_of(ref), of_batch_read=is_read)
    return ref.with_options(own)


def _user_of(ref: TableRef) -> str:
    """Return the table and where its options were given, for warnings that have no line of the user."""
    return f"{ref.name}, format('penstock')"


def _location(options: Mapping[str, str]) -> str | None:
    return options.get("path") or options.get("location") or None


def _split_location(location: str) -> tuple[str, str | None]:
    """Split a location such as ``<path>$snapshots`` into path and system table."""
    path, mark, name = location.rstrip("/").rpartition("$")
    return (path, name) if mark and name in SYSTEM_TABLES else (location, None)

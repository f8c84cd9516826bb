"""Reading of planned files as Arrow record batches.

Source:
    Paimon ``core:operation/RawFileSplitRead.java``, ``core:utils/FormatReaderMapping.java``;
    docs/spec/format.md section 8.
"""

from __future__ import annotations

import difflib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from queue import Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from penstock.datafile.conform import make_batch
from penstock.datafile.evolve import plan_evolution
from penstock.datafile.filter import filter_batch, to_scalar
from penstock.datafile.formats import FORMATS
from penstock.datafile.types import ArrowAny, to_arrow_schema
from penstock.errors import FormatError, InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.format.deletion_vector import FRAME_BYTES, decode_deletion_vector
from penstock.format.layout import format_of
from penstock.io.failures import enough_memory
from penstock.metrics import ROWS
from penstock.predicate.tree import FALSE
from penstock.table.assumptions import check_schema_of_file
from penstock.table.read.split import plan_splits
from penstock.table.ref import ExternalPaths, FileLocator
from penstock.table.row_tracking import TRACKED, has_tracked, numbered, with_tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from penstock.datafile.evolve import Evolution
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.types.data_types import DataField
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# The size of Penstock's row groups: smaller batches would cost Python time per batch, larger ones only memory.
BATCH_ROWS: Final = 131_072
# Batches that each file may have waiting for the consumer; see ``read_ahead``.
_READ_AHEAD: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _FilePlan:
    """How to convert files of one schema to the read schema.

    Attributes:
        evolution: converts the file's columns to ``fields``.
        fields: columns that the projection and the filter need, without partition columns.
        is_tracked: whether some of ``fields`` are of row tracking.
        is_plain: whether ``fields`` are exactly the projected columns, so that batches need no further change.
    """

    evolution: Evolution
    fields: tuple[DataField, ...]
    is_tracked: bool
    is_plain: bool


class TableReader:
    """Reads splits of one table as record batches of one schema. Threads may share it.

    Args:
        ref: its schema is the read schema.
        store: loads the schemas that files were written with.
        columns: names of the columns to read, in order; None for all.

    Attributes:
        schema: canonical Arrow schema of every batch.
    """

    def __init__(
        self,
        ref: TableRef,
        store: MetadataStore,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._ref = ref
        self._store = store
        self._batch_rows = batch_rows
        self._fields = select_fields(ref, columns)
        self._external = ExternalPaths.of(ref)
        self._deleted = DeletedRows(ref)
        self._partition_keys = ref.schema.partition_keys
        self._plans: dict[tuple[int, tuple[str, ...]], _FilePlan] = {}
        self.schema = to_arrow_schema(self._fields)

    def opens_files(self, splits: Iterable[DataSplit]) -> bool:
        """Whether the columns or the filter need more than manifests have: partition values, numbers of rows."""
        rests = {id(split.rest): split.rest for split in splits}
        fields = chain(self._fields, *(rest.fields for rest in rests.values()))
        return any(field.name not in self._partition_keys for field in fields)

    def read_split(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split that pass the filter, in write order; no batch is empty."""
        largest = max((file.file_size for file in split.files), default=0)
        threads = min(self._ref.file_io.files_ahead(largest), len(split.files))
        sources = [partial(self.read_file, split, file) for file in split.files]
        yield from read_ahead(sources, threads=threads, items_ahead=1)

    def read_file(self, split: DataSplit, file: DataFileMeta) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file of a split that pass the filter, in file order."""
        if split.rest.root == FALSE:
            return
        plan = self._plan(file.schema_id, split)
        if not plan.fields:
            # Only partition columns or none are needed: the manifest has their values and the number of rows.
            # Batches without columns take no memory, so one holds all rows.
            rows: Iterable[pa.RecordBatch] = _count_out(
                file.row_count, self._batch_rows if self._fields or split.rest.fields else max(file.row_count, 1)
            )
        else:
            rows = self._load(split, file, plan.evolution)
            if plan.is_tracked:
                rows = numbered(rows, file, self._ref.name)
        place = next((place for name, place in split.vectors if name == file.file_name), None)
        deleted = None if place is None else self._deleted.load(file, place)
        if deleted is not None:
            rows = without_rows(rows, deleted)
        constants = _Constants(self._ref, split)
        for batch in rows:
            if ROWS.location is not None:
                ROWS.add(self._ref.location, read=batch.num_rows)
            evolved = plan.evolution.apply(batch) if plan.fields else batch
            kept = evolved if split.rest.is_always_true else filter_batch(evolved, split.rest)
            if not kept.num_rows:
                continue
            yield kept if plan.is_plain else self._assemble(kept, constants)

    def _load(self, split: DataSplit, file: DataFileMeta, evolution: Evolution) -> Iterator[pa.RecordBatch]:
        path = split.path_of(file, self._external)
        where = f"table {self._ref.name}" + (f", snapshot {split.snapshot_id}" if split.snapshot_id else "")
        rows = 0
        try:
            data_format = FORMATS[format_of(file.file_name)]
            for batch in data_format.read(self._ref.file_io, path, evolution.file_fields, batch_rows=self._batch_rows):
                rows += batch.num_rows
                if rows > file.row_count:
                    break
                yield batch
        except NotFoundError as error:
            raise NotFoundError(
                f"{where}: data file {path} is missing; if the snapshot "
                "has expired read a newer one, else look with 'penstock fsck', restore the file, or roll back to a "
                "snapshot without it"
            ) from error
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"{where}: {error}") from error
        except FormatError as error:
            raise FormatError(
                f"{where}: data file {error}; restore it from a copy, or roll back to a snapshot without it"
            ) from error
        if rows != file.row_count:
            raise FormatError(
                f"{where}: data file {path} has "
                f"{'more' if rows > file.row_count else rows} rows, while its manifest says {file.row_count}: it was "
                "overwritten or damaged; restore it from a copy, or roll back to a snapshot without it"
            )

    def _plan(self, schema_id: int, split: DataSplit) -> _FilePlan:
        key = schema_id, split.rest.columns
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._new_plan(schema_id, split)
        return plan

    def _new_plan(self, schema_id: int, split: DataSplit) -> _FilePlan:
        wanted = {field.name: field for field in (*self._fields, *split.rest.fields)}
        fields = tuple(field for name, field in wanted.items() if name not in self._partition_keys)
        check_schema_of_file(self._ref, self._store, schema_id, fields)
        is_today = schema_id == self._ref.schema.id
        file_fields = self._ref.schema.fields if is_today else self._store.load_schema(schema_id).fields
        is_tracked = has_tracked(fields)
        if is_tracked and not has_tracked(file_fields):
            file_fields = (*file_fields, *TRACKED)
        return _FilePlan(
            evolution=plan_evolution(file_fields, fields),
            fields=fields,
            is_tracked=is_tracked,
            is_plain=fields == self._fields and bool(fields),
        )

    def _assemble(self, batch: pa.RecordBatch, constants: _Constants) -> pa.RecordBatch:
        arrays = [
            constants.array(field, arrow_field.type, batch.num_rows)
            if field.name in self._partition_keys
            else batch.column(field.name)
            for field, arrow_field in zip(self._fields, self.schema, strict=True)
        ]
        return make_batch(arrays, self.schema, batch.num_rows)


def select_fields(ref: TableRef, columns: Sequence[str] | None) -> tuple[DataField, ...]:
    """Return the given columns of the read schema, in the given order; all if ``columns`` is None."""
    if columns is None:
        return ref.schema.fields
    by_name = {field.name: field for field in with_tracked(ref.schema).fields}
    for name in columns:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"its columns are {', '.join(by_name)}"
            raise NotFoundError(f"table {ref.name}: no column '{name}'; {hint}")
    if len(set(columns)) < len(columns):
        raise InvalidSchemaError(f"table {ref.name}: a column is asked for twice in {', '.join(columns)}")
    return tuple(by_name[name] for name in columns)


def read_split(
    ref: TableRef, store: MetadataStore, split: DataSplit, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one split; see ``TableReader``."""
    return TableReader(ref, store, columns).read_split(split)


def open_batches(
    ref: TableRef,
    store: MetadataStore,
    plan: ScanPlan,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Return a reader over the rows of a plan, in the order of its splits; files are read while it is consumed.

    Args:
        limit: maximum number of rows; None for all.
    """
    reader = TableReader(ref, store, columns)
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader, ref, plan, limit, _READ_AHEAD))


def read_arrow(
    ref: TableRef,
    store: MetadataStore,
    plan: ScanPlan,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> pa.Table:
    """Return the rows of a plan, in the order of its splits.

    Args:
        limit: maximum number of rows; None for all.
    """
    reader = TableReader(ref, store, columns)
    # Without a limit, all rows end up in memory anyway, so files are read ahead without a bound. With a limit, a bound
    # avoids reading more rows than needed.
    with enough_memory(ref.name):
        batches = _batches(reader, ref, plan, limit, 0 if limit is None else _READ_AHEAD)
        return pa.Table.from_batches(list(batches), schema=reader.schema)


def _batches(
    reader: TableReader, ref: TableRef, plan: ScanPlan, limit: int | None, items_ahead: int
) -> Iterator[pa.RecordBatch]:
    if not len(reader.schema) and not plan.vectors and all(part.rest.is_always_true for part in plan.partitions):
        return _limited(_count_out(plan.row_count, max(plan.row_count, 1)), limit)
    splits = plan_splits(ref, plan)
    sources = [partial(reader.read_file, split, file) for split in splits for file in split.files]
    largest = max((file.file_size for split in splits for file in split.files), default=0)
    # Without a file to open, threads only cost time.
    threads = min(ref.file_io.parallel_files(largest), len(sources)) if reader.opens_files(splits) else 1
    return _limited(read_ahead(sources, threads=threads, items_ahead=items_ahead), limit)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    left = limit
    while left > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, left)
        left -= batch.num_rows


class _Constants:
    """Makes Arrow columns of one partition's values, and caches them."""

    def __init__(self, ref: TableRef, split: DataSplit) -> None:
        self._values = dict(zip(ref.schema.partition_keys, split.values, strict=True))
        self._arrays: dict[str, ArrowAny] = {}

    def array(self, field: DataField, arrow_type: ArrowAny, rows: int) -> ArrowAny:
        array = self._arrays.get(field.name)
        if array is None or len(array) < rows:
            value = self._values[field.name]
            scalar: ArrowAny = to_scalar(value, arrow_type)
            array = self._arrays[field.name] = pa.repeat(scalar, rows)
        return array.slice(0, rows)


def _count_out(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, batch_rows):
        yield make_batch((), pa.schema([]), min(batch_rows, rows - start))


def are_among_data_files(ref: TableRef) -> bool:
    """Whether index files are in the directories of buckets."""
    return ref.options.get("index-file-in-data-file-dir", "false").strip().lower() == "true"


class DeletedRows:
    """Reads the deletion vectors of data files. Thread-safe."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._locator = FileLocator.of(ref)

    def load(self, file: DataFileMeta, place: VectorPlace) -> npt.NDArray[np.int64]:
        """Return the positions of the deleted rows of a file, ascending."""
        path = self.path_of(place)
        try:
            rows = decode_deletion_vector(self.read(place), path)
        except NotFoundError as error:
            raise NotFoundError(
                f"table {self._ref.name}: {path} is missing, which has the deletion vector of {file.file_name}; "
                "if the snapshot has expired read a newer one, else restore the file from a copy"
            ) from error
        if len(rows) and rows[-1] >= file.row_count:
            raise FormatError(
                f"table {self._ref.name}: {path} deletes row {rows[-1]} of {file.file_name}, which is none"
            )
        return rows

    def count(self, files: Iterable[DataFileMeta], vectors: Iterable[tuple[str, VectorPlace]]) -> int:
        """Return how many rows of files are deleted; reads the vectors of those whose number is not in a manifest."""
        names = {file.file_name for file in files}
        return sum(self.count_of(place) for name, place in vectors if name in names)

    def count_of(self, place: VectorPlace) -> int:
        """Return how many rows a vector deletes."""
        known = place.row_count
        return len(decode_deletion_vector(self.read(place), self.path_of(place))) if known is None else known

    def read(self, place: VectorPlace) -> bytes:
        """Return the bytes of a deletion vector with its frame. Raises ``NotFoundError``."""
        with self._ref.file_io.open_input(self.path_of(place)) as stream:
            stream.seek(place.offset)
            return bytes(stream.read(place.length + FRAME_BYTES))

    def path_of(self, place: VectorPlace) -> str:
        """Return the path of the file that has a deletion vector."""
        if place.external_path:
            return self._locator.external.readable(place.external_path)
        if are_among_data_files(self._ref):
            return f"{self._locator.directory(place.partition, place.bucket)}/{place.index_file}"
        return self._ref.layout.index_path(place.index_file)


def without_rows(batches: Iterable[pa.RecordBatch], deleted: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a whole file without some rows.

    Args:
        deleted: positions in the file, ascending.
    """
    first = 0
    for batch in batches:
        rows = batch.num_rows
        low, high = np.searchsorted(deleted, (first, first + rows))
        gone = deleted[low:high] - first
        first += rows
        if not len(gone):
            yield batch
        elif not batch.num_columns:
            yield make_batch((), batch.schema, rows - len(gone))
        else:
            stays = np.ones(rows, dtype=bool)
            stays[gone] = False
            yield batch.filter(pa.array(stays))


_Item = TypeVar("_Item")
_WAIT_SECONDS = 0.1


def read_ahead(sources: Sequence[Callable[[], Iterator[_Item]]], *, threads: int, items_ahead: int) -> Iterator[_Item]:
    """Yield the items of all sources, one source after another, while the next sources are read in threads.

    The threads end when the iterator is exhausted, fails, or is closed.

    Args:
        sources: each is called once, and is iterated in one thread.
        threads: number of sources that are read at the same time.
        items_ahead: maximum number of waiting items of each source; 0 for no limit.
    """
    if threads <= 1 or len(sources) <= 1:
        for source in sources:
            yield from source()
        return
    stop = Event()
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="penstock-read") as pool:
        try:
            pending: list[_Lane[_Item]] = []
            for source in sources:
                lane = _Lane[_Item](items_ahead, stop)
                pool.submit(lane.fill, source)
                pending.append(lane)
                if len(pending) > threads:
                    yield from pending.pop(0).drain()
            for lane in pending:
                yield from lane.drain()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


class _End:
    """Marks the end of a source; ``error`` is the error that ended it, None after a normal end."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Lane(Generic[_Item]):
    """Queue that passes the items of one source to the consuming thread."""

    def __init__(self, items_ahead: int, stop: Event) -> None:
        self._queue: Queue[_Item | _End] = Queue(items_ahead)
        self._stop = stop

    def fill(self, source: Callable[[], Iterator[_Item]]) -> None:
        try:
            for item in source():
                if not self._put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - ``drain`` raises it again in the consuming thread
            self._put(_End(error))
        else:
            self._put(_End())

    def drain(self) -> Iterator[_Item]:
        while True:
            item = self._queue.get()
            if not isinstance(item, _End):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                return

    def _put(self, item: _Item | _End) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_WAIT_SECONDS)
            except Full:
                continue
            return True
        return False

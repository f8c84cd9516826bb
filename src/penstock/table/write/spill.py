"""External stable sort of rows by group, in bounded memory.

Batches are kept in memory until they fill half of the buffer (sorting needs the other half). Then they are sorted by
group and written to local disk as one run. Draining merges the runs and the rows in memory group by group, the runs in
the order they were written, so that rows of one group keep their incoming order.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidOptionError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.options import WriteOptions

MAX_RUNS: Final = 128
"""Runs that are merged at once, each with an open file and one batch read ahead; as ``local-sort.max-num-file-handles``
of the reference."""

# With this batch size, 128 runs read ahead at most 64 MB. Smaller batches would compress worse.
RUN_BATCH_BYTES: Final = 512 * 1024
# The batches of a run are joined for sorting, and Arrow's string offsets have 31 bits.
MAX_SORTED_BYTES: Final = 1 << 30
_CODECS: Final[dict[str, Literal["zstd", "lz4"] | None]] = {"zstd": "zstd", "lz4": "lz4", "none": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Sorted rows on disk.

    Attributes:
        file: open and without a name, so that the system deletes it when the process ends, also after a crash.
        groups: ascending, with ``counts`` rows each.
    """

    file: IO[bytes]
    groups: list[int]
    counts: list[int]


class _Cursor:
    """Reads sorted rows group by group, with one batch read ahead."""

    def __init__(self, batches: Iterator[pa.RecordBatch], groups: Sequence[int], counts: Sequence[int]) -> None:
        self._batches = batches
        self._counts = dict(zip(groups, counts, strict=True))
        self._batch: pa.RecordBatch | None = None
        self._offset = 0

    def rows_of(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group; none if these rows do not contain it. Call it with ascending groups."""
        wanted = self._counts.pop(group, 0)
        while wanted:
            if self._batch is None or self._offset == self._batch.num_rows:
                self._batch, self._offset = next(self._batches), 0
            part = self._batch.slice(self._offset, wanted)
            self._offset += part.num_rows
            wanted -= part.num_rows
            yield part


class SpillBuffer:
    """Buffers rows of any number of groups until they are drained.

    Memory use stays at about ``write_buffer_bytes``, plus one incoming batch and, while draining, one small batch per
    run.

    Args:
        schema: of all batches.
        options: buffer size, whether and how to spill, and how much disk space runs may take.
        directory: for runs; None for the system's temporary directory.
        table: name for messages.
    """

    def __init__(
        self, schema: pa.Schema, options: WriteOptions, *, directory: str | None = None, table: str = ""
    ) -> None:
        self._schema = schema
        self._options = options
        self._directory = directory
        self._table = table
        self._limit_bytes = _limit_bytes(options.write_buffer_bytes)
        self._batches: list[pa.RecordBatch] = []
        self._ids: list[Ids] = []
        self._bytes = 0
        self._runs: list[_Run] = []
        self._disk_bytes = 0
        self._ipc_options = _ipc_options(options)

    @property
    def is_full(self) -> bool:
        """Whether the caller must call ``spill`` (if ``may_spill``) or else ``drain`` before it adds more rows."""
        return self._bytes >= self._limit_bytes

    @property
    def may_spill(self) -> bool:
        """Whether the options allow one more run on disk."""
        disk_bytes = self._disk_bytes + self._bytes
        return (
            self._options.write_buffer_spillable
            and len(self._runs) < MAX_RUNS
            and disk_bytes <= self._options.write_buffer_spill_max_disk_bytes
        )

    @property
    def run_count(self) -> int:
        """Number of runs on disk now."""
        return len(self._runs)

    def yield_memory(self, size: int) -> None:
        """Reduce the buffer by ``size`` bytes, so that other data may use them; at least a quarter of it remains."""
        total = self._options.write_buffer_bytes
        self._limit_bytes = _limit_bytes(max(total - size, total // 4))

    def add(self, batch: pa.RecordBatch, ids: Ids) -> None:
        """Add rows; ``ids`` are their groups. The batch is kept, not copied."""
        self._batches.append(batch)
        self._ids.append(ids)
        self._bytes += batch.nbytes + ids.nbytes

    def spill(self) -> None:
        """Write the rows in memory to disk as one run."""
        if not self._batches:
            return
        groups, counts, batches = self._take_sorted()
        with self._named_errors("spill rows to"):
            file = tempfile.TemporaryFile(prefix="penstock-spill-", dir=self._directory)  # noqa: SIM115 - the run owns it
            self._runs.append(_Run(file=file, groups=groups, counts=counts))
            with pa.ipc.new_stream(pa.PythonFile(file, mode="w"), self._schema, options=self._ipc_options) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            self._disk_bytes += file.tell()
        # After sorting, Arrow's allocator holds as much unused memory as the buffer had.
        pa.default_memory_pool().release_unused()

    def drain(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows as (group, rows), with ascending groups; afterwards the buffer is empty."""
        groups, counts, batches = self._take_sorted()
        cursors = [_Cursor(self._read_run(run), run.groups, run.counts) for run in self._runs]
        cursors.append(_Cursor(batches, groups, counts))
        for group in sorted({*groups, *(group for run in self._runs for group in run.groups)}):
            for cursor in cursors:
                for rows in cursor.rows_of(group):
                    yield group, rows
        self.close()

    def close(self) -> None:
        """Drop all rows and delete the runs on disk."""
        for run in self._runs:
            with suppress(OSError):  # closing flushes the buffer; the file is closed in any case, and is deleted
                run.file.close()
        self._runs.clear()
        self._batches.clear()
        self._ids.clear()
        self._bytes = self._disk_bytes = 0

    def _read_run(self, run: _Run) -> Iterator[pa.RecordBatch]:
        with self._named_errors("read spilled rows from"):
            file: ArrowAny = run.file
            file.seek(0)
            with pa.ipc.open_stream(pa.PythonFile(file, mode="r")) as reader:
                yield from reader

    @contextmanager
    def _named_errors(self, action: str) -> Iterator[None]:
        """Raise ``StorageError`` if the local disk fails."""
        try:
            yield
        except OSError as error:
            place = self._directory or tempfile.gettempdir()
            raise StorageError(
                f"table {self._table}: cannot {action} '{place}': {error}; free local disk, point TMPDIR elsewhere, or "
                "set 'write-buffer-spillable' = 'false'"
            ) from error

    def _take_sorted(self) -> tuple[list[int], list[int], Iterator[pa.RecordBatch]]:
        """Empty the memory; return its groups, their row counts, and the sorted rows in small batches."""
        if not self._batches:
            return [], [], iter(())
        ids = np.concatenate(self._ids)
        order = stable_order(ids)
        stretches = list(split_sorted(ids[order]))
        groups = [stretch.group for stretch in stretches]
        counts = [stretch.stop - stretch.start for stretch in stretches]
        (joined,) = pa.Table.from_batches(self._batches).combine_chunks().to_batches()
        rows = max(1, RUN_BATCH_BYTES * joined.num_rows // max(self._bytes, 1))
        self._batches.clear()
        self._ids.clear()
        self._bytes = 0
        return groups, counts, (joined.take(to_indices(order[i : i + rows])) for i in range(0, len(order), rows))


def _limit_bytes(buffer_bytes: int) -> int:
    return min(max(buffer_bytes // 2, 1), MAX_SORTED_BYTES)


def _ipc_options(options: WriteOptions) -> ArrowAny:
    if options.spill_compression not in _CODECS:
        raise InvalidOptionError(
            f"option 'spill-compression' = '{options.spill_compression}': expected one of {', '.join(_CODECS)}"
        )
    codec = _CODECS[options.spill_compression]
    level = options.spill_compression_zstd_level if codec == "zstd" else None
    return pa.ipc.IpcWriteOptions(compression=None if codec is None else pa.Codec(codec, compression_level=level))


Ids: TypeAlias = "npt.NDArray[np.int32]"
Places: TypeAlias = "npt.NDArray[np.intp]"


class Stretch(NamedTuple):
    """Rows ``start`` to ``stop`` (exclusive) of sorted rows belong to ``group``."""

    group: int
    start: int
    stop: int


def stable_order(ids: Ids) -> Places:
    """Return the row indexes sorted by id; equal ids keep their order. Ids must not be negative."""
    highest = int(ids.max(initial=0))
    # numpy sorts 8-bit and 16-bit numbers by radix sort, ten times faster than wider ones by comparison.
    if highest < 1 << 8:
        return np.argsort(ids.astype(np.uint8), kind="stable")
    order = np.argsort(ids.astype(np.uint16), kind="stable")
    if highest < 1 << 16:
        return order
    high_halves = (ids >> 16).astype(np.uint16)
    return order[np.argsort(high_halves[order], kind="stable")]


def to_indices(places: Places) -> ArrowAny:
    """Return row indexes in Arrow's form, without a copy.

    Unlike ``pa.array``, this does not import pandas, which takes a process about a second.
    """
    data: Any = places  # it has the buffer protocol, which its type does not show
    return pa.Array.from_buffers(pa.from_numpy_dtype(places.dtype), len(places), [None, pa.py_buffer(data)])


def split_sorted(ids: Ids) -> Iterator[Stretch]:
    """Yield the stretches of equal ids in sorted ids."""
    starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist()]
    stops = [*starts[1:], len(ids)]
    if len(ids):
        for group, start, stop in zip(ids[starts].tolist(), starts, stops, strict=True):
            yield Stretch(group, start, stop)

"""Changes rows that another engine, such as Spark for UPDATE, has found: it names each by its file and position there.

As for every row change, files are rewritten, or get deletion vectors where the table has these; see ``run``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import CommitConflictError, StorageError, UnsupportedFeatureError
from penstock.table.actions.rewriting import check_schema_of_rewritten, for_existing_rows
from penstock.table.assumptions import at_latest_schema
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.dml.change import ChangedBatch, some
from penstock.table.dml.replacement import commit_changes
from penstock.table.dml.run import as_marked, load_peers, marks_rows, place_of, removal_of, write_in_place, write_rows
from penstock.table.read.batches import DeletedRows, TableReader
from penstock.table.read.prune import NO_FILTER, is_key_of
from penstock.table.read.scan import load_vector_places
from penstock.table.read.split import with_vectors
from penstock.table.ref import ExternalPaths
from penstock.table.row_tracking import ROW_ID, SEQUENCE_NUMBER, is_tracked
from penstock.table.write.assign import Assigner, Group
from penstock.table.write.rolling import plan_buckets
from penstock.table.write.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.change import Rows
    from penstock.table.dml.replacement import ReadFiles
    from penstock.table.message import CommitMessage
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_THREADS: Final = 4
_Files: TypeAlias = "dict[str, tuple[DataSplit, DataFileMeta]]"
"""Files by their paths, each with a split of it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta:
    """Some rows of a file that a statement deletes or updates.

    Attributes:
        positions: of the rows in the file, from 0, ascending.
        updated: which of them are updated; the others are deleted.
        after: the updated rows, in their order, with the columns of the table.
    """

    positions: npt.NDArray[np.int64]
    updated: Rows
    after: pa.RecordBatch


class RowDeltas(Protocol):
    """What a statement does to the rows of a table. Shared by threads."""

    def paths(self) -> frozenset[str]:
        """Return the paths of the files with rows that change."""
        ...

    def of(self, path: str) -> Sequence[Iterable[RowDelta]]:
        """Return the rows of a file in parts, each in the order of their positions."""
        ...

    def new_rows(self) -> Sequence[Iterable[pa.RecordBatch]]:
        """Return the rows to insert, in parts."""
        ...


def commit_deltas(committer: TableCommitter, read: ReadFiles, deltas: RowDeltas) -> Snapshot | None:
    """Change the rows of a table in one commit.

    Args:
        read: the files that may have rows to change.

    Returns:
        The snapshot; None if no row changes.

    Raises:
        CommitConflictError: others have added a file on which the change depends, or removed or changed one of those
            whose rows it changes.
    """
    _check_marks(committer)
    writer, external = _DeltaWriter(committer, deltas), ExternalPaths.of(committer.ref)
    paths = deltas.paths()
    changed = {
        split.path_of(file, external): (replace(split, files=(file,)), file)
        for split in read.splits
        for file in split.files
    }
    unread = paths.difference(changed)
    if unread:
        raise StorageError(
            f"table {committer.ref.name}: rows of {min(unread)} are to change, which was not read; nothing was changed"
        )
    groups = _groups_of(committer, read.snapshot, {path: changed[path] for path in changed if path in paths})
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        futures = [pool.submit(writer.write, each) for each in groups]
        inserted = [pool.submit(writer.insert, part) for part in deltas.new_rows()]
        futures += inserted
    messages = tuple(message for each in futures if each.exception() is None for message in each.result())
    try:
        for each in futures:
            each.result()
    except BaseException:
        delete_new_files(committer.ref, messages)
        raise
    replaced = tuple(split for each in groups for split, _ in each.values())
    # New rows depend on all files, in which their source has found no row.
    has_inserted = any(future.result() for future in inserted)
    read = replace(read, splits=(*read.splits, *replaced) if has_inserted else replaced)
    return commit_changes(committer, read, messages)


def _groups_of(committer: TableCommitter, snapshot: Snapshot | None, files: _Files) -> list[_Files]:
    """Return files with rows that change in groups to rewrite together, with their peers of queues.

    The condition of the change may have excluded a peer, so that it was not read.
    """
    ref, store = committer.ref, committer.store
    external, peers = ExternalPaths.of(ref), load_peers(ref, store, snapshot, files.values())
    vectors = load_vector_places(store, snapshot) if peers and snapshot else {}
    groups: dict[object, _Files] = {}
    for path, (split, file) in files.items():
        place = place_of(split, file)
        if place not in peers:
            groups[path] = {path: (split, file)}
        elif place not in groups:
            of_files = [with_vectors(replace(split, files=(each.file,)), vectors) for each in peers[place]]
            groups[place] = {each.path_of(each.files[0], external): (each, each.files[0]) for each in of_files}
    return list(groups.values())


def _check_marks(committer: TableCommitter) -> None:
    """Refuse vectors for a table that has lost the option, without which other engines do not read them."""
    latest = at_latest_schema(committer.ref, committer.store)
    if marks_rows(latest) != marks_rows(committer.ref):
        raise CommitConflictError(
            f"table {committer.ref.name}: 'deletion-vectors.enabled' was altered while rows changed; nothing was "
            "committed: load the table again and repeat the change"
        )


class _DeltaWriter:
    """Writes what changes. Shared by threads."""

    def __init__(self, committer: TableCommitter, deltas: RowDeltas) -> None:
        self._ref = ref = committer.ref
        self._deltas = deltas
        self._marks = marks_rows(ref)
        self._target = for_existing_rows(ref, keep_lengths=False)
        self._rows = TableReader(for_existing_rows(ref), committer.store)
        self._store = committer.store
        self._deleted = DeletedRows(ref)

    def insert(self, part: Iterable[pa.RecordBatch]) -> tuple[CommitMessage, ...]:
        """Write some new rows, to which the commit gives ids."""
        with TableWriter(for_existing_rows(self._ref, keep_lengths=False, have_ids=False)) as writer:
            for rows in part:
                writer.write(rows)
            return writer.prepare_commit()

    def write(self, group: _Files) -> tuple[CommitMessage, ...]:
        """Rewrite files that change together, or mark the rows of one that change and write the updated ones."""
        files = tuple(file for _, file in group.values())
        check_schema_of_rewritten(self._ref, files)
        (split, file), *_ = group.values()
        if not self._marks and all(self._is_emptied(path, *each) for path, each in group.items()):
            return (removal_of(split, files),)
        rows = [self._rows_of(*each) for each in group.values()]
        parts = [[_Part(part) for part in self._deltas.of(path)] for path in group]
        whole = [replace(split, rest=NO_FILTER, vectors=()) for split, _ in group.values()]
        changes = map(self._updated if self._marks else self._rewritten, whole, files, rows, parts)
        batches = chain.from_iterable(changes)
        if not self._marks:
            return write_in_place(self._target, split, files, batches)
        return as_marked(self._ref, split, file, rows[0].gone, write_rows(self._target, split, batches))

    def _is_emptied(self, path: str, split: DataSplit, file: DataFileMeta) -> bool:
        """Whether all rows of a file are deleted, before or now, so that it is not read."""
        rows = self._rows_of(split, file)
        for delta in chain.from_iterable(self._deltas.of(path)):
            if delta.updated.any():
                return False
            rows.take(delta)
        return bool(rows.gone.all())

    def _rows_of(self, split: DataSplit, file: DataFileMeta) -> _FileRows:
        rows = _FileRows(f"table {self._ref.name}: {file.file_name}", file.row_count)
        place = dict(split.vectors).get(file.file_name)
        if place is not None:
            rows.gone[self._deleted.load(file, place)] = True
        return rows

    def _updated(
        self, whole: DataSplit, file: DataFileMeta, rows: _FileRows, parts: Sequence[_Part]
    ) -> Iterator[ChangedBatch]:
        """Yield the updated rows of a file, and note which of its rows are deleted, before or now."""
        ids: ArrowAny = None
        for delta in (delta for part in parts for delta in part.deltas()):
            places = rows.take(delta)
            if not len(places):
                continue
            if ids is None and is_tracked(self._ref.options):
                ids = self._row_ids(whole, file)
            after = self._complete(delta.after, ids, places)
            yield ChangedBatch(after=after, moved=self._moved(whole, file, after))

    def _rewritten(
        self, whole: DataSplit, file: DataFileMeta, rows: _FileRows, parts: Sequence[_Part]
    ) -> Iterator[ChangedBatch]:
        """Yield the rows of a file that stay, the updated ones at their positions."""
        first = 0
        for batch in self._rows.read_file(whole, file):
            last = first + batch.num_rows
            batches, places = [batch], np.arange(batch.num_rows)
            moved = np.zeros(batch.num_rows, dtype=bool)
            count, stays = batch.num_rows, ~rows.gone[first:last]
            for delta in (delta for part in parts for delta in part.deltas(before=last)):
                updated = rows.take(delta, first) - first
                stays[delta.positions[~delta.updated] - first] = False
                if not len(updated):
                    continue
                ids = batch.column(ROW_ID.name) if ROW_ID.name in batch.schema.names else None
                after = self._complete(delta.after, ids, updated)
                batches.append(after)
                places[updated] = np.arange(count, count + after.num_rows)
                count += after.num_rows
                moves = self._moved(whole, file, after)
                if moves is not None:
                    moved[updated] = moves
            left: ArrowAny = pa.array(places[stays], pa.int64())
            start, moved = 0, moved[stays]
            for after in pa.Table.from_batches(batches, schema=batch.schema).take(left).combine_chunks().to_batches():
                end = start + after.num_rows
                yield ChangedBatch(after=after, moved=some(moved[start:end]))
                start = end
            first = last
        for delta in (delta for part in parts for delta in part.deltas()):
            rows.take(delta, first)

    def _moved(self, whole: DataSplit, file: DataFileMeta, after: pa.RecordBatch) -> Rows | None:
        check_keys(self._ref, self._store, (file,))
        return moved_rows(self._target, whole, after)

    def _row_ids(self, whole: DataSplit, file: DataFileMeta) -> ArrowAny:
        """Return the ids of all rows of a file."""
        reader = TableReader(for_existing_rows(self._ref), self._store, (ROW_ID.name,))
        return pa.concat_arrays([batch.column(0) for batch in reader.read_file(whole, file)])

    @staticmethod
    def _complete(rows: pa.RecordBatch, ids: ArrowAny, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Return updated rows with the columns of row tracking: they keep their ids, and get the commit's number."""
        if ids is None:
            return rows
        rows = rows.append_column(ROW_ID.name, ids.take(pa.array(places)))
        return rows.append_column(SEQUENCE_NUMBER.name, pa.nulls(rows.num_rows, pa.int64()))


class _FileRows:
    """Which rows of a file are gone, and which of these were updated.

    Args:
        where: names the file, for messages.
    """

    def __init__(self, where: str, row_count: int) -> None:
        self.gone = np.zeros(row_count, dtype=bool)
        self._updated = np.zeros(row_count, dtype=bool)
        self._where = where

    def take(self, delta: RowDelta, first: int = 0) -> npt.NDArray[np.int64]:
        """Note the rows of a delta; return the positions of the updated ones.

        Several rows of the source of a MERGE may delete the same row, but not update it.

        Args:
            first: position from which on rows may change.
        """
        positions, count = delta.positions, len(self.gone)
        if positions[-1] >= count:
            raise StorageError(
                f"{self._where} has {count} rows, but row {positions[-1]} is to change; nothing was changed"
            )
        steps = np.diff(positions)
        if positions[0] < first or (steps < 0).any():
            raise StorageError(f"{self._where}: rows to change are not in the order of the file; nothing was changed")
        updated = positions[delta.updated]
        is_twice = ((steps == 0) & (delta.updated[1:] | delta.updated[:-1])).any()
        if is_twice or self.gone[updated].any() or self._updated[positions].any():
            raise StorageError(
                f"{self._where} has a row that is to change twice, or was deleted before; nothing was changed"
            )
        self.gone[positions] = True
        self._updated[updated] = True
        return updated


class _Part:
    """Rows of a file that change, in the order of their positions, of which some are taken at a time."""

    def __init__(self, deltas: Iterable[RowDelta]) -> None:
        self._deltas = iter(deltas)
        self._left: RowDelta | None = None

    def deltas(self, before: int | None = None) -> Iterator[RowDelta]:
        """Yield the next rows, up to a position."""
        while True:
            delta = self._left or next(self._deltas, None)
            self._left = None
            if delta is None:
                return
            count = len(delta.positions) if before is None else int(np.searchsorted(delta.positions, before))
            if count < len(delta.positions):
                self._left = _sliced(delta, count, len(delta.positions))
                delta = _sliced(delta, 0, count)
            if count:
                yield delta
            if self._left is not None:
                return


def _sliced(delta: RowDelta, start: int, end: int) -> RowDelta:
    first, last = (int(np.count_nonzero(delta.updated[:place])) for place in (start, end))
    return RowDelta(
        positions=delta.positions[start:end],
        updated=delta.updated[start:end],
        after=delta.after.slice(first, last - first),
    )


def check_keys(ref: TableRef, store: MetadataStore, files: Iterable[DataFileMeta]) -> None:
    """Refuse files in buckets by another type of the key, whose unchanged rows would seem to move."""
    keys = plan_buckets(ref).key
    fields = [field for field in ref.schema.fields if field.name in keys]
    for schema_id in {file.schema_id for file in files} - {ref.schema.id}:
        if not is_key_of(store.load_schema(schema_id), fields):
            raise UnsupportedFeatureError(
                f"table {ref.name}: the type of its bucket key was changed after schema {schema_id}, by which files of "
                "this change were written, so nothing was changed; use Table.update, Table.merge, Table.delete, or "
                "penstock.sql"
            )


def moved_rows(ref: TableRef, split: DataSplit, rows: pa.RecordBatch) -> Rows | None:
    """Return which rows no longer belong to the partition and the bucket of a split; None for none."""
    own = Group(partition=split.partition, bucket=split.bucket)
    # A partition from before the table was rescaled has buckets of another number.
    assigner = Assigner(ref.schema, replace(plan_buckets(ref), num_buckets=split.total_buckets))
    groups = assigner.assign(rows)
    stays = np.full(rows.num_rows, fill_value=True)
    stays &= np.isin(groups, [place for place, group in enumerate(assigner.groups) if group == own])
    return some(~stays)

"""Commits to tables with deletion vectors: no vector is lost, and no deleted row comes back."""

from __future__ import annotations

import io
import itertools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import fastavro
import numpy as np
import pytest
from tests.deletion_vectors import delete_keys

import penstock
from penstock import CommitConflictError, StorageError, UnsupportedFeatureError
from penstock.format.deletion_vector import encode_deletion_vector
from penstock.format.manifest.entry import FileKey
from penstock.format.manifest.index_manifest import NewVector, VectorChanges, change_vectors, decode_vector_places
from penstock.format.snapshot import VECTORS_OF, CommitKind, encode_snapshot
from penstock.io.memory import MemoryFileIO
from penstock.table.actions.changes import open_committer
from penstock.table.commit import committer, vectors
from penstock.table.commit.delta import CommitRequest
from penstock.table.commit.reused_ids import is_built_on_previous, is_in_time
from penstock.table.compact.commit import commit_compacted, is_lost
from penstock.table.compact.job import merge_one
from penstock.table.compact.plan import plan_compaction
from penstock.table.compact.rewrite import rewrite
from penstock.table.read.batches import TableReader
from penstock.table.read.scan import load_vector_places
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import StreamOffset
from penstock.table.stream.scanner import StreamScanner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

NUMBERS: Final = itertools.count()
DELETED: Final = {"deletion-vectors.enabled": "true"}
FULLY: Final = {"compaction.delete-ratio-threshold": "0"}


def new_table(
    options: dict[str, str] | None = None, *, parts: Sequence[str] = (), values: tuple[str, str] = ("a", "b")
) -> penstock.Table:
    """A table with two files of ten rows each; of the rows 1, 2 and 11 are deleted."""
    catalog = penstock.Catalog(f"memory://vectors-{next(NUMBERS)}/w")
    catalog.create_database("d")
    made = catalog.create_table(
        "d.t", "k INT, p STRING", partition_by=list(parts), options={**DELETED, **(options or {})}
    )
    for first in (0, 10):
        made.append([{"k": k, "p": values[first // 10]} for k in range(first, first + 10)])
    assert delete_keys(made, "k", {1, 2, 11}) == 3
    return made


def keys(table: penstock.Table) -> list[int]:
    return sorted(table.to_arrow()["k"].to_pylist())


def names_of(table: penstock.Table) -> list[str]:
    return [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]


def places(table: penstock.Table) -> dict[str, VectorPlace]:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return {key.file_name: place for key, place in load_vector_places(table._store, snapshot).items()}


def index_files(table: penstock.Table) -> set[str]:
    return {status.path.rpartition("/")[2] for status in table._ref.file_io.list(f"{table.location}/index")}


LEFT: Final = [k for k in range(20) if k not in {1, 2, 11}]


def test_an_append_keeps_the_vectors() -> None:
    table = new_table()
    before = places(table)
    table.append([{"k": 20, "p": "c"}])
    assert places(table) == before
    assert keys(table) == [*LEFT, 20]


def test_what_removes_a_file_removes_its_vector_and_keeps_the_others() -> None:
    table = new_table()
    first, second = names_of(table)
    before = places(table)
    assert table.delete("k < 10").rows_deleted == 8
    (kept,) = places(table).items()
    assert kept[0] == second
    # Paimon reads the vectors of a file one after another, so no gap stays.
    assert kept[1].offset == 1
    assert kept[1].index_file != before[first].index_file
    assert keys(table) == LEFT[8:]
    table.truncate()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None


def test_the_main_figures_count_the_rows_that_are_left() -> None:
    assert new_table().inspect.summary().rows == len(LEFT)


def test_deleted_rows_are_not_found_again() -> None:
    table = new_table()
    before = table.latest_snapshot()
    assert table.delete("k IN (1, 2, 11)").rows_deleted == 0
    assert table.update({"p": "x"}, "k = 2").rows_updated == 0
    assert table.latest_snapshot() == before
    merged = table.merge([{"k": 11, "p": "again"}], "k", not_matched=penstock.MergeInsert())
    assert (merged.rows_updated, merged.rows_inserted) == (0, 1)
    assert keys(table) == sorted([*LEFT, 11])


def test_a_file_whose_other_rows_are_all_deleted_is_dropped_unread() -> None:
    table = new_table()
    result = table.delete("k < 10")
    assert (result.rows_deleted, result.files_added) == (8, 0)
    assert keys(table) == [k for k in LEFT if k >= 10]
    assert list(places(table)) == names_of(table)


@pytest.mark.parametrize("bucket", ["-1", "1"])
def test_a_compaction_leaves_the_deleted_rows_out(bucket: str) -> None:
    table = new_table({"bucket": bucket, **({"bucket-key": "k"} if bucket == "1" else {}), "write-only": "true"})
    assert table.compact(options={"compaction.min.file-num": "9", "compaction.delete-ratio-threshold": "0.5"})
    assert table.to_arrow()["k"].to_pylist() == LEFT
    done = table.compact(options=FULLY)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert (snapshot.index_manifest, sum(each.files_in for each in done.partitions)) == (
        None,
        2 if bucket == "1" else 0,
    )
    assert table.to_arrow()["k"].to_pylist() == LEFT
    assert sum(table.files()["record_count"].to_pylist()) == len(LEFT)
    assert [batch.num_rows for batch in table.follow(once=True, options={"scan.mode": "latest-full"})]


def test_large_files_are_rewritten_if_more_rows_than_the_threshold_are_deleted() -> None:
    table = new_table({"target-file-size": "1 kb", "compaction.small-file-ratio": "0.01"})
    assert not table.compact().snapshots
    assert table.inspect.summary().waiting_files == 0
    assert not table.compact(options={"compaction.delete-ratio-threshold": "0.2"}).snapshots
    much = {"compaction.delete-ratio-threshold": "0.1"}
    assert table.with_options(much).inspect.summary().waiting_files == 1
    (part,) = table.compact(options=much).partitions
    assert part.files_in == 1
    assert list(places(table)) == [name for name in names_of(table) if name in places(table)]
    assert keys(table) == LEFT


def _merged(table: penstock.Table) -> list[CommitMessage]:
    ref = table._ref.with_options({"compaction.force-rewrite-all-files": "true", "target-file-size": "1 b"})
    plan = plan_compaction(ref, table._store)
    assert len(plan.tasks) == 2
    return [rewrite(task, ref) for task in plan.tasks]


def test_a_merge_is_lost_if_a_row_was_deleted_meanwhile() -> None:
    table = new_table()
    messages = _merged(table)
    assert delete_keys(table, "k", {15}) == 1
    done = commit_compacted(open_committer(table._ref), messages, commit_user="u")
    assert ([len(done.committed), len(done.lost)]) == [1, 1]
    assert keys(table) == [k for k in LEFT if k != 15]
    lost = done.lost[0].compact_after[0].file_name
    assert lost not in {
        status.path.rpartition("/")[2] for status in table._ref.file_io.list(f"{table.location}/bucket-0")
    }


def test_a_merge_of_deleted_rows_is_lost_if_a_rollback_brought_them_back() -> None:
    table = new_table()
    delete_keys(table, "k", set(range(10)))
    messages = _merged(table)
    assert [bool(message.compact_after) for message in messages] == [False, True]
    table.rollback_to(snapshot_id=3)
    done = commit_compacted(open_committer(table._ref), messages, commit_user="u")
    assert [len(done.committed), len(done.lost)] == [1, 1]
    assert keys(penstock.Table.at(table.location)) == LEFT


def test_a_merge_whose_vector_was_moved_and_expired_is_lost() -> None:
    table = new_table()
    ref = table._ref.with_options({"compaction.force-rewrite-all-files": "true", "target-file-size": "1 b"})
    first, second = plan_compaction(ref, table._store).tasks
    commit_compacted(open_committer(ref), [rewrite(first, ref)], commit_user="u")
    table.expire_snapshots(retain_max=1, retain_min=1)
    merged = merge_one(second, ref)
    assert merged.message is None
    assert is_lost(open_committer(ref), second, merged.error)
    assert keys(table) == LEFT


def test_an_append_reads_no_vectors() -> None:
    table = new_table()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    table._ref.file_io.delete(table._ref.layout.manifest_path(snapshot.index_manifest or ""))
    assert penstock.Table.at(table.location).append([{"k": 20, "p": "c"}])


def test_each_index_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    for first in range(20, 120, 10):
        table.append([{"k": k, "p": "c"} for k in range(first, first + 10)])
    delete_keys(table, "k", set(range(20, 120, 10)))
    reads = list[str]()
    real = MemoryFileIO.read
    monkeypatch.setattr(MemoryFileIO, "read", lambda self, path: reads.append(path) or real(self, path))
    assert table.delete("k = 5").rows_deleted == 1
    # To find the row, to add it to the rows that are deleted before, and to copy the other ten vectors.
    assert sum("/index/" in path for path in reads) == 3


def made_by_java(store: MetadataStore, snapshot: Snapshot) -> None:
    """Take out of a snapshot what shows on what Penstock has built it."""
    properties = tuple(each for each in snapshot.properties if each[0] != VECTORS_OF)
    data = encode_snapshot(replace(snapshot, writer_version=None, properties=properties))
    store.file_io.write(store.layout.snapshot_path(snapshot.id), data)


@pytest.mark.parametrize("by_java", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_late_put_of_new_vectors_is_seen(*, is_late: bool, by_java: bool) -> None:
    """No data file shows whether the next snapshot was built on one that only adds vectors."""
    table = new_table()
    base = table.latest_snapshot()
    ours = table.delete("k = 5").snapshot
    assert base is not None
    assert ours is not None
    path = table._ref.layout.snapshot_path(ours.id)
    data = table._ref.file_io.read(path)
    if is_late:
        table.rollback_to(snapshot_id=base.id)
        table.append([{"k": 30, "p": "a"}])
    table.append([{"k": 31, "p": "a"}])
    store = penstock.Table.at(table.location)._store
    if by_java:
        made_by_java(store, store.load_snapshot(ours.id + 1))
    # The snapshots below have expired meanwhile, so a put of the id succeeds.
    store.file_io.delete(store.layout.snapshot_path(base.id))
    store.file_io.write(path, data)
    if is_late and by_java:
        with pytest.raises(StorageError, match="it is not known whether it was built on that"):
            is_in_time(table._ref, store, base, ours, ())
        assert store.has_snapshot(ours.id)
    else:
        assert is_in_time(table._ref, store, base, ours, ()) is not is_late
        assert store.has_snapshot(ours.id) is not is_late


@pytest.mark.parametrize("change", ["k = 6", "k < 10", "k = 15"])
def test_what_others_delete_after_a_put_does_not_make_it_late(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """They write the same index file again, and do not say on what they have built."""
    table = new_table({"manifest.merge-min-count": "1", "snapshot.num-retained.min": "1"})
    real, puts = committer.put_snapshot, list[int]()

    def put(ref: TableRef, base: Snapshot, snapshot: Snapshot, *rest: Any) -> bool:
        is_put = real(ref, base, snapshot, *rest)
        puts.append(snapshot.id)
        if len(puts) == 1:
            penstock.Table.at(table.location).delete(change)
            store = penstock.Table.at(table.location)._store
            made_by_java(store, store.load_snapshot(snapshot.id + 1))
            store.file_io.delete(store.layout.snapshot_path(base.id))
        return is_put

    monkeypatch.setattr(committer, "put_snapshot", put)
    done = table.delete("k = 5")
    assert (puts, done.rows_deleted) == ([4, 5], 1)
    gone = {"k = 6": {5, 6}, "k = 15": {5, 15}}.get(change, set(range(10)))
    assert keys(penstock.Table.at(table.location)) == [k for k in LEFT if k not in gone]


def test_a_late_delete_of_a_file_that_others_have_removed_still_marks_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    real, puts = committer.put_snapshot, list[int]()

    def put(ref: TableRef, base: Snapshot, snapshot: Snapshot, *rest: Any) -> bool:
        puts.append(snapshot.id)
        if len(puts) == 1:
            other = penstock.Table.at(table.location)
            other.delete("k < 10")
            other.append([{"k": 20, "p": "a"}])
            for number in range(1, snapshot.id + 1):  # they expire
                ref.file_io.delete(ref.layout.snapshot_path(number))
        return real(ref, base, snapshot, *rest)

    monkeypatch.setattr(committer, "put_snapshot", put)
    assert table.delete("k < 13").rows_deleted == 2
    assert keys(penstock.Table.at(table.location)) == [*range(13, 21)]


def test_a_snapshot_whose_vectors_were_rolled_back_is_no_base() -> None:
    """Files do not show what a snapshot was built on if commits change vectors alone."""
    table = new_table()
    table.delete("k = 5")
    table.delete("k = 6")
    store = table._store
    target, between, late = (store.load_snapshot(number) for number in (3, 4, 5))
    freed = [range(5, 9)]
    assert is_built_on_previous(store, late, freed)
    path = table._ref.layout.snapshot_path(between.id)
    table._ref.file_io.write(path, encode_snapshot(replace(target, id=4, uuid="another")))
    assert not is_built_on_previous(penstock.Table.at(table.location)._store, late, freed)


def test_index_files_among_data_files_are_not_written() -> None:
    table = new_table({"index-file-in-data-file-dir": "true"})
    for name in index_files(table):
        data = table._ref.file_io.read(table._ref.layout.index_path(name))
        table._ref.file_io.write(f"{table.location}/bucket-0/{name}", data)
    assert keys(table) == LEFT
    with pytest.raises(UnsupportedFeatureError, match="index-file-in-data-file-dir"):
        table.delete("k = 5")
    assert keys(table) == LEFT


def test_fsck_finds_damaged_and_missing_index_files() -> None:
    table = new_table()
    (name,) = index_files(table)
    path = table._ref.layout.index_path(name)
    data = table._ref.file_io.read(path)
    assert not table.inspect.fsck().findings
    table._ref.file_io.write(path, data[:-1] + bytes([data[-1] ^ 1]))
    (found,) = penstock.Table.at(table.location).inspect.fsck().findings
    assert (found.kind, found.what) == ("damaged", "index file")
    table._ref.file_io.delete(path)
    (found,) = penstock.Table.at(table.location).inspect.fsck().findings
    assert (found.kind, found.what) == ("missing", "index file")


def test_merges_of_files_with_vectors_in_one_index_file_are_committed_one_by_one() -> None:
    """Each commit moves the vectors of the others to a new file; they are the same vectors."""
    table = new_table()
    committer = open_committer(table._ref)
    for message in _merged(table):
        done = commit_compacted(committer, [message], commit_user="u")
        assert len(done.committed) == 1
    assert keys(table) == LEFT
    assert not places(table)


def test_a_merge_is_lost_if_its_first_deletion_came_meanwhile() -> None:
    table = new_table()
    table.append([{"k": 30, "p": "c"}])
    ref = table._ref.with_options({"compaction.force-rewrite-all-files": "true", "target-file-size": "1 b"})
    messages = [rewrite(task, ref) for task in plan_compaction(ref, table._store).tasks]
    delete_keys(table, "k", {30})
    done = commit_compacted(open_committer(table._ref), messages, commit_user="u")
    assert [len(done.committed), len(done.lost)] == [2, 1]
    assert keys(table) == LEFT


@pytest.mark.parametrize("how", ["drop", "expire", "overwrite"])
def test_what_drops_a_partition_drops_its_vectors(how: str) -> None:
    options = {"partition.expiration-time": "1 d", "partition.timestamp-formatter": "yyyy-MM-dd"}
    table = new_table(options, parts=["p"], values=("2020-01-01", "2999-01-01"))
    if how == "drop":
        table.drop_partitions({"p": "2020-01-01"})
    elif how == "expire":
        assert len(table.maintenance.expire_partitions()) == 1
    else:
        table.overwrite([{"k": 30, "p": "2020-01-01"}])
    (name,) = places(table)
    assert name in names_of(table)
    assert keys(table) == [*(k for k in LEFT if k >= 10), *([30] if how == "overwrite" else [])]
    table.truncate()
    assert not places(table)


def test_a_lost_race_leaves_no_index_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    real, others = MemoryFileIO.put_if_absent, iter([True])

    def put(self: MemoryFileIO, path: str, data: bytes) -> bool:
        if "/snapshot/snapshot-" in path and next(others, False):
            penstock.Table.at(table.location).append([{"k": 20, "p": "c"}])
        return real(self, path, data)

    messages = _merged(table)[:1]
    monkeypatch.setattr(MemoryFileIO, "put_if_absent", put)
    assert len(commit_compacted(open_committer(table._ref), messages, commit_user="u").committed) == 1
    assert keys(table) == [*LEFT, 20]
    (place,) = places(table).values()
    assert len(index_files(table)) == 2
    assert place.index_file in index_files(table)


def test_an_expiration_removes_index_files_that_no_snapshot_names() -> None:
    table = new_table()
    assert len(index_files(table)) == 1
    table.compact(options={**FULLY, "compaction.force-rewrite-all-files": "true"})
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not index_files(table)
    assert keys(table) == LEFT


@pytest.mark.parametrize("options", [{}, {"bucket": "2", "bucket-key": "k"}])
def test_a_stream_leaves_out_the_deleted_rows_of_the_snapshot_that_it_begins_with(options: dict[str, str]) -> None:
    table = new_table(options)
    scanner = StreamScanner(table._ref.with_options({"scan.mode": "latest-full"}), table._store)
    reader = TableReader(table._ref, table._store)
    offset, delivered = StreamOffset(), list[list[int]]()

    def deliver(most: ReadLimits) -> None:
        nonlocal offset, scanner
        end = scanner.advance(offset, most)
        # A new process plans the same.
        scanner = StreamScanner(table._ref.with_options({"scan.mode": "latest-full"}), table._store)
        splits = [split for task in scanner.plan_range(offset, end) for split in task.splits]
        delivered.append([key for each in splits for rows in reader.read_split(each) for key in rows["k"].to_pylist()])
        offset = end

    deliver(NO_LIMITS)  # resolves where the stream begins
    deliver(ReadLimits(max_files=1))
    # What is deleted later is delivered, also after a merge.
    delete_keys(table, "k", {3, 13})
    table.compact(options=FULLY)
    deliver(NO_LIMITS)
    table.append([{"k": 20, "p": "c"}, {"k": 21, "p": "c"}])
    delete_keys(table, "k", {20})
    deliver(NO_LIMITS)
    assert sorted(itertools.chain.from_iterable(delivered)) == [*LEFT, 20, 21]
    assert keys(table) == [*(k for k in LEFT if k not in {3, 13}), 21]


def test_rescaling_leaves_the_deleted_rows_out() -> None:
    table = new_table({"bucket": "1", "bucket-key": "k"}, parts=["p"])
    delete_keys(table, "k", set(range(10)))
    table.maintenance.rescale(2)
    table = penstock.Table.at(table.location)
    table.append([{"k": 3, "p": "a"}])
    assert keys(table) == [3, *(k for k in LEFT if k >= 10)]
    assert not places(table)


def test_indexes_of_other_kinds_refuse_changes(index_manifest: bytes) -> None:
    table = new_table()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    table._ref.file_io.write(table._ref.layout.manifest_path(snapshot.index_manifest or ""), index_manifest)
    for change in (penstock.Table.truncate, lambda it: it.delete("k = 5")):
        with pytest.raises(UnsupportedFeatureError, match=r"index files \(HASH\)"):
            change(penstock.Table.at(table.location))


def test_an_index_manifest_keeps_fields_of_newer_releases() -> None:
    fields = [
        {"name": "_KIND", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_NEW", "type": ["null", "string"]},
    ]
    record = {"_KIND": 0, "_INDEX_TYPE": "HASH", "_FILE_NAME": "index-0", "_PARTITION": b"", "_BUCKET": 0, "_NEW": "x"}
    stream = io.BytesIO()
    fastavro.writer(stream, {"type": "record", "name": "r", "fields": fields}, [record])
    storage: Any = None  # nothing is copied
    data = change_vectors(stream.getvalue(), "p", VectorChanges(removed={FileKey(b"", 0, "f")}), storage)
    assert data is not None
    assert list(fastavro.reader(io.BytesIO(data))) == [record]


def test_many_vectors_of_a_bucket_are_copied_in_a_time_that_grows_with_their_size() -> None:
    table = new_table()
    owner = open_committer(table._ref)
    storage = vectors._IndexFiles(table._ref, owner._new_writer())
    framed = encode_deletion_vector(np.arange(0, 8_000, 2), is_64=False)
    added = [NewVector(data_file=f"f{number}", framed=framed, row_count=4_000) for number in range(4_000)]
    start = time.process_time()
    data = change_vectors(None, "p", VectorChanges(added={(b"", 0): added}), storage)
    data = change_vectors(data, "p", VectorChanges(added={(b"", 0): added[:1]}), storage)
    # 32 MB; a copy for each vector would be 130 GB.
    assert time.process_time() - start < 5
    found = decode_vector_places(data or b"", "p")
    assert [storage.read(found[FileKey(b"", 0, name)]) for name in ("f0", "f3999")] == [framed] * 2


def test_a_commit_of_rows_that_were_read_with_another_vector_is_refused() -> None:
    table = new_table()
    (message, *_) = _merged(table)
    request = CommitRequest(commit_user="u", kind=CommitKind.COMPACT, messages=(replace(message, vectors=()),))
    with pytest.raises(CommitConflictError, match="deleted rows of files that were rewritten"):
        open_committer(table._ref).commit(request)
    assert keys(table) == LEFT

"""The numbers that a commit finds in the headers of manifests are those of the live files, whatever the history."""

from __future__ import annotations

import random
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

import fastavro
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies_manifest import manifest_entries
from tests.unit.table.commit_tables import append, committer, live, new_file, new_queue, partition, rows

from penstock.format.avro.container import AvroCodec, Block, decode_container, encode_container, read_note
from penstock.format.manifest.entry import FileKind, ManifestEntry
from penstock.format.manifest.files import (
    decode_bucket_numbers,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
    number_buckets,
)
from penstock.format.snapshot import CommitKind, Snapshot
from penstock.table.actions.changes import commit_overwrite, drop_partitions, truncate
from penstock.table.actions.restore import restore_snapshot
from penstock.table.commit.delta import BucketIndex, CommitRequest
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.message import CommitMessage
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.partition_scope import scope_of_specs
from penstock.table.read.live import load_bucket_numbers, load_live_entries, load_live_numbers
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.commit.committer import TableCommitter

DAYS = ("a", "b", "c")
BUCKETS = 3
EVERYTHING = frozenset(map(partition, DAYS))


class History:
    """A queue, what its writers do to it, and how much of its numbers came from headers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not for secrets
        options = {"manifest.merge-min-count": "4", "manifest.target-file-size": "3 kb"}
        if self.random.random() < 0.5:
            options["manifest.full-compaction-threshold-size"] = "8 kb"
        self.ref = new_queue(BUCKETS, **options)
        self.writers = [committer(self.ref) for _ in range(2)]
        self.from_headers = self.from_entries = 0
        self._steps = (self.append, self.append, self.append, self.compact, self.compact, self.overwrite, self.drop)
        self._rare_steps = (self.truncate, self.roll_back, self.restore, self.write_elsewhere, self.expire)

    @property
    def writer(self) -> TableCommitter:
        return self.random.choice(self.writers)

    def step(self) -> None:
        self.random.choice(self._rare_steps if self.random.random() < 0.2 else self._steps)()

    def append(self) -> None:
        messages = [self.rows(day) for day in DAYS if self.random.random() < 0.7]
        self.writer.commit(append(*messages))

    def rows(self, day: str) -> CommitMessage:
        counts = [self.random.randint(1, 9) for _ in range(self.random.randint(1, 2))]
        return rows(*counts, p=day, bucket=self.random.randrange(BUCKETS), total_buckets=BUCKETS)

    def compact(self) -> None:
        """Replace some files of a bucket by one, which other engines may number in their own way."""
        groups: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        for entry in live(self.ref):
            groups.setdefault((entry.partition, entry.bucket), []).append(entry.file)
        if not groups:
            return
        (data, bucket), files = self.random.choice(list(groups.items()))
        files.sort(key=lambda file: file.min_sequence_number)
        start = self.random.randrange(len(files))
        before = tuple(files[start:])
        after = self.numbered(before[0].min_sequence_number, max(file.max_sequence_number for file in before))
        if self.random.random() < 0.2:
            after = self.numbered(before[0].min_sequence_number, before[0].min_sequence_number + 1)
        message = CommitMessage(
            partition=data,
            bucket=bucket,
            total_buckets=BUCKETS,
            compact_before=before,
            compact_after=() if self.random.random() < 0.1 else (after,),
        )
        self.writer.commit(CommitRequest(commit_user="merges", kind=CommitKind.COMPACT, messages=(message,)))

    def numbered(self, first: int, last: int) -> DataFileMeta:
        return replace(new_file(1), min_sequence_number=first, max_sequence_number=last)

    def overwrite(self) -> None:
        day = self.random.choice(DAYS)
        commit_overwrite(self.writer, (self.rows(day),), scope_of_specs(self.ref, [{"p": day}]))

    def drop(self) -> None:
        drop_partitions(self.writer, [{"p": self.random.choice(DAYS)}])

    def truncate(self) -> None:
        truncate(self.writer)

    def roll_back(self) -> None:
        ids = MetadataStore(self.ref).list_snapshot_ids()
        if ids:
            store = MetadataStore(self.ref)
            apply_rollback(store, plan_rollback(store, snapshot_id=self.random.choice(ids)))

    def restore(self) -> None:
        ids = MetadataStore(self.ref).list_snapshot_ids()
        if ids:
            restore_snapshot(committer(self.ref), snapshot_id=self.random.choice(ids))

    def expire(self) -> None:
        """Delete the oldest snapshots; their manifests do not matter here."""
        for snapshot_id in MetadataStore(self.ref).list_snapshot_ids()[:-2]:
            self.ref.file_io.delete(self.ref.layout.snapshot_path(snapshot_id))

    def write_elsewhere(self) -> None:
        """Write some manifests as other engines do: without numbers in the header, buckets in the list, or both."""
        store = MetadataStore(self.ref)
        latest = store.load_latest_snapshot()
        if latest is None:
            return
        for name in (latest.base_manifest_list, latest.delta_manifest_list):
            path = self.ref.layout.manifest_path(name)
            metas = []
            for meta in decode_manifest_list(self.ref.file_io.read(path), path):
                other = replace(meta, min_bucket=None, max_bucket=None, min_level=None, max_level=None)
                if self.random.random() < 0.5:
                    manifest = self.ref.layout.manifest_path(meta.file_name)
                    data = encode_manifest(decode_manifest(self.ref.file_io.read(manifest), manifest))
                    other = replace(other, file_name=f"{meta.file_name}1", file_size=len(data))
                    self.ref.file_io.write(f"{manifest}1", data)
                metas.append(other)
            self.ref.file_io.write(path, encode_manifest_list(metas))
        clear_metadata_cache()
        for writer in self.writers:
            writer.store = MetadataStore(self.ref)

    def check(self) -> None:
        store = MetadataStore(self.ref)
        latest = store.load_latest_snapshot()
        if latest is None:
            return
        expected = index_of(load_live_entries(store, latest).values())
        for is_cached in (True, False):
            for wanted in (EVERYTHING, frozenset({partition(self.random.choice(DAYS))})):
                if not is_cached:
                    clear_metadata_cache()
                index = BucketIndex()
                index.advance(
                    latest,
                    wanted,
                    source=store,
                    load_live=lambda snapshot, some: load_live_numbers(store, self.ref.schema, snapshot, some),
                    load_numbers=lambda snapshot, some: load_bucket_numbers(store, self.ref.schema, snapshot, some),
                )
                numbers = {key: number for key, number in expected.next_numbers.items() if key[0] in wanted}
                assert index.next_numbers == numbers
                totals = {key: total for key, total in expected.total_buckets.items() if key in wanted}
                assert index.total_buckets == totals
                found, rest = load_bucket_numbers(store, self.ref.schema, latest, wanted)
                self.from_headers += len(found)
                self.from_entries += len(rest)


def index_of(entries: Iterable[ManifestEntry]) -> BucketIndex:
    """The index of a snapshot with these live files, all of which were decoded."""
    index = BucketIndex()
    index.advance(
        LATEST, EVERYTHING, source=NoSource(), load_live=lambda *_: entries, load_numbers=lambda _, some: ((), some)
    )
    return index


class NoSource:
    """An index that knows no snapshot reads no deltas."""

    def find_snapshot(self, _snapshot_id: int) -> None:
        raise AssertionError

    def load_delta(self, _snapshot: object) -> tuple[()]:
        raise AssertionError


def _first_snapshot() -> Snapshot:
    snapshot = committer(new_queue(1)).commit(append(rows(1, total_buckets=1)))
    assert snapshot is not None
    return snapshot


LATEST = _first_snapshot()


@given(st.integers(0, 1 << 32), st.integers(1, 25))
def test_numbers_are_those_that_reading_everything_finds(seed: int, steps: int) -> None:
    history = History(seed)
    for _ in range(steps):
        history.step()
        history.check()


def test_histories_take_numbers_from_headers_and_from_entries() -> None:
    histories = [History(seed) for seed in range(8)]
    for history in histories:
        for _ in range(20):
            history.step()
            history.check()
    assert sum(history.from_headers for history in histories) > 100
    assert sum(history.from_entries for history in histories) > 10


@given(st.lists(manifest_entries(), max_size=12), st.sampled_from(["zstd", "none"]))
def test_a_header_says_the_numbers_of_the_entries(entries: list[ManifestEntry], codec: str) -> None:
    data = encode_manifest(entries, codec=codec, has_numbers=True)
    assert decode_manifest(data, "m") == entries
    found = decode_bucket_numbers(data, len(entries))
    if any(entry.total_buckets > 0 for entry in entries):
        assert found is not None
        assert sorted(found) == sorted(number_buckets(entries))
    else:
        assert found is None
        assert data == encode_manifest(entries, codec=codec)
    assert decode_bucket_numbers(data, len(entries) + 1) is None
    assert decode_bucket_numbers(encode_manifest(entries, codec=codec), len(entries)) is None


ENTRIES = tuple(
    ManifestEntry(kind=kind, partition=partition(day), bucket=bucket, total_buckets=2, file=new_file(10 * bucket + 1))
    for kind in (FileKind.ADD, FileKind.DELETE)
    for day in DAYS
    for bucket in range(2)
)


def test_no_number_is_taken_from_a_damaged_manifest() -> None:
    data = encode_manifest(ENTRIES, has_numbers=True)
    numbers = decode_bucket_numbers(data, len(ENTRIES))
    assert numbers == number_buckets(ENTRIES)
    for place in range(len(data)):
        assert decode_bucket_numbers(data[:place], len(ENTRIES)) is None
        changed = data[:place] + bytes([data[place] ^ 0x11]) + data[place + 1 :]
        # What is damaged in the schema or in the blocks is found when they are decoded.
        assert decode_bucket_numbers(changed, len(ENTRIES)) in (None, numbers)


def test_a_header_that_was_copied_to_other_entries_is_not_used() -> None:
    data = encode_manifest(ENTRIES, codec="none", has_numbers=True)
    others = encode_manifest(ENTRIES[::-1], codec="none", has_numbers=True)
    sync, other_sync = data[-16:], others[-16:]
    assert sync != other_sync
    header = data[: data.index(sync)]
    copied = header + others[others.index(other_sync) :]
    assert decode_manifest(copied, "m") == list(ENTRIES[::-1])
    assert decode_bucket_numbers(copied, len(ENTRIES)) is None


def test_entries_without_buckets_and_of_too_many_buckets_have_no_numbers_in_the_header() -> None:
    scalable = [replace(entry, total_buckets=-1) for entry in ENTRIES]
    many = [replace(ENTRIES[0], bucket=bucket, total_buckets=2_000) for bucket in range(1_025)]
    for entries in (scalable, many):
        assert encode_manifest(entries, has_numbers=True) == encode_manifest(entries)


def test_a_note_may_have_any_bytes_and_other_readers_skip_it() -> None:
    for note in (b"", b"\0", bytes(70_000)):
        data = encode_container('"long"', [Block(1, b"\x02")], codec=AvroCodec.NULL, notes={"any": note})
        assert read_note(data, "any") == note
        assert read_note(data, "other") is None
        assert list(fastavro.reader(BytesIO(data))) == [1]
        assert [block.payload for block in decode_container(data, "m").blocks] == [b"\x02"]
    for damaged in (b"", b"Obj\x01", b"no Avro file"):
        assert read_note(damaged, "any") is None

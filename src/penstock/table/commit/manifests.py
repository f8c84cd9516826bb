"""Writing of manifests and manifest lists, and their merging, so that commit time does not grow with history.

Source:
    Paimon ``core:manifest/ManifestFile.java``, ``ManifestList.java``, ``core:operation/ManifestFileMerger.java``;
    docs/spec/format.md section 5, docs/spec/commit.md section 4.3.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InvalidOptionError, StorageError
from penstock.format.layout import MANIFEST_LIST_PREFIX, MANIFEST_PREFIX, NameSource, TableLayout
from penstock.format.manifest.entry import FileKind, ManifestEntry, ManifestFileMeta, merge_entries
from penstock.format.manifest.files import encode_manifest, encode_manifest_list
from penstock.format.manifest.stats import float_order, partition_stats
from penstock.format.row.row import arity_of, row_decoder
from penstock.table.metadata_cache import METADATA, entry_bytes, meta_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType
    from penstock.io.file_io import FileIO
    from penstock.options import ManifestOptions

    LoadManifest = Callable[[ManifestFileMeta], Sequence[ManifestEntry]]
    FindHolders = Callable[[frozenset[bytes]], Callable[[ManifestFileMeta], bool]]
    WriteManifests = Callable[[Sequence[ManifestEntry]], tuple[ManifestFileMeta, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFile:
    """A manifest list on storage: its name and exact size."""

    name: str
    size: int


_FULL_ENTRIES: Final = 4_700
"""Entries that fill a manifest of any size. A scan of one partition reads whole manifests, and the default size of 8 MB
can hold 160,000 small entries: with some 5,000, it reads one partition of 100 in 1,000,000 files 50 times as fast.
Manifests that are not split have less than twice as many and a sixteenth: less than 10,000."""

_MIN_SPLIT: Final = 17 / 16
"""Minimum average fullness of manifests when entries are split among several: enough that none of them is less than
full. Manifests that are not full would be merged and split again by each commit."""


def fullness(size: int, entries: int, target_bytes: int) -> float:
    """Return how full a manifest is: 1.0 or more if it is complete.

    Args:
        size: in bytes.
        entries: number of entries.
        target_bytes: ``manifest.target-file-size``.
    """
    return max(size / target_bytes, entries / _FULL_ENTRIES)


def split_count(size: int, entries: int, target_bytes: int) -> int:
    """Return among how many manifests to split entries; arguments as of ``fullness``."""
    return max(1, int(fullness(size, entries, target_bytes) / _MIN_SPLIT))


def split_evenly(entries: Sequence[ManifestEntry], parts: int) -> list[Sequence[ManifestEntry]]:
    """Split entries among ``parts`` manifests, or fewer if there are fewer entries, none of them empty."""
    parts = min(parts, len(entries))
    ends = [len(entries) * part // parts for part in range(parts + 1)]
    return [entries[start:end] for start, end in pairwise(ends)]


@dataclass(slots=True, kw_only=True)
class ManifestWriter:
    """Writes the metadata files of one commit and records their paths, so that they can be deleted after a lost race.

    Attributes:
        location: the table's directory.
        partition_types: for the statistics of each manifest.
        written: paths of all files written, without those that ``forget`` has removed.
    """

    file_io: FileIO
    location: str
    options: ManifestOptions
    partition_types: tuple[DataType, ...]
    manifest_names: NameSource = field(default_factory=lambda: NameSource(MANIFEST_PREFIX, str(uuid.uuid4())))
    list_names: NameSource = field(default_factory=lambda: NameSource(MANIFEST_LIST_PREFIX, str(uuid.uuid4())))
    written: list[str] = field(default_factory=list)
    _waiting: list[Callable[[], None]] | None = None

    def write_manifests(self, entries: Sequence[ManifestEntry], *, schema_id: int) -> tuple[ManifestFileMeta, ...]:
        """Write the entries, in order, to manifests that are full (see ``fullness``) or slightly more.

        Args:
            entries: if empty, no manifest is written.
            schema_id: recorded if the entries' files have none larger.
        """
        if not entries:
            return ()
        data = self._encode(entries)
        parts = split_count(len(data), len(entries), self.options.manifest_target_file_bytes)
        if parts == 1 or len(entries) == 1:
            return (self._write_manifest(entries, data, schema_id),)
        chunks = split_evenly(entries, parts)
        return tuple(self._write_manifest(chunk, self._encode(chunk), schema_id) for chunk in chunks)

    def write_list(self, manifests: Sequence[ManifestFileMeta]) -> ListFile:
        """Write a manifest list; a list without manifests is written as a file too (docs/spec/format.md section 3)."""
        data = encode_manifest_list(
            manifests, codec=self.options.manifest_compression, level=self.options.compression_zstd_level
        )
        name = self.list_names.next_name()
        self._write(name, data, manifests, meta_bytes(manifests))
        return ListFile(name=name, size=len(data))

    def write_file(self, path: str, data: bytes) -> None:
        """Write another file of the commit, such as an index manifest."""
        self.written.append(path)
        self.file_io.write(path, data)

    def forget(self, paths: Collection[str]) -> None:
        """Never delete these files from now on: a snapshot names them."""
        self.written = [path for path in self.written if path not in paths]

    def delete_written(self, *, keep: Collection[str] = ()) -> None:
        """Delete the written files, except those in ``keep``; files that cannot be deleted remain as orphans."""
        kept = {TableLayout(self.location).manifest_path(name) for name in keep}
        for path in self.written:
            if path not in kept:
                with suppress(StorageError):
                    self.file_io.delete(path)
        self.written = [path for path in self.written if path in kept]

    @contextmanager
    def written_at_once(self, *, also: Callable[[], None]) -> Iterator[None]:
        """Write the files of the block when it ends, in parallel if the storage is slow to answer.

        Args:
            also: called at the same time.
        """
        self._waiting = []
        try:
            yield
            self.file_io.run_many([*self._waiting, also])
        finally:
            self._waiting = None

    @contextmanager
    def deleted_on_error(self) -> Iterator[None]:
        """Delete the written files if the block raises."""
        try:
            yield
        except BaseException:
            self.delete_written()
            raise

    def _encode(self, entries: Sequence[ManifestEntry]) -> bytes:
        return encode_manifest(
            entries,
            codec=self.options.manifest_compression,
            level=self.options.compression_zstd_level,
            has_numbers=True,
        )

    def _write_manifest(self, entries: Sequence[ManifestEntry], data: bytes, schema_id: int) -> ManifestFileMeta:
        name = self.manifest_names.next_name()
        self._write(name, data, entries, entry_bytes(entries))
        deleted = sum(entry.kind is FileKind.DELETE for entry in entries)
        buckets = [entry.bucket for entry in entries]
        levels = [entry.file.level for entry in entries]
        row_ids = [entry.file.first_row_id for entry in entries]
        first_row_ids = [row_id for row_id in row_ids if row_id is not None]
        # Row ids are recorded only when every entry has one (docs/spec/format.md section 5.1).
        has_row_ids = len(first_row_ids) == len(entries)
        last_row_ids = [
            entry.file.first_row_id + entry.file.row_count - 1
            for entry in entries
            if entry.file.first_row_id is not None
        ]
        return ManifestFileMeta(
            file_name=name,
            file_size=len(data),
            num_added_files=len(entries) - deleted,
            num_deleted_files=deleted,
            partition_stats=partition_stats([entry.partition for entry in entries], self.partition_types),
            schema_id=max((entry.file.schema_id for entry in entries), default=schema_id),
            min_bucket=min(buckets),
            max_bucket=max(buckets),
            min_level=min(levels),
            max_level=max(levels),
            min_row_id=min(first_row_ids) if has_row_ids else None,
            max_row_id=max(last_row_ids) if has_row_ids else None,
        )

    def _write(self, name: str, data: bytes, content: Sequence[Any], size: int) -> None:
        path = TableLayout(self.location).manifest_path(name)
        # The path is recorded before the write: a failed write may have created the file nevertheless.
        self.written.append(path)
        write = partial(self._write_now, path, data, tuple(content), size)
        if self._waiting is None:
            write()
        else:
            self._waiting.append(write)

    def _write_now(self, path: str, data: bytes, content: tuple[Any, ...], size: int) -> None:
        self.file_io.write(path, data)
        METADATA.put(self.file_io, path, content, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Manifests of a list, and the manifests that replace them.

    Attributes:
        inputs: names; neighbours in the list, or in the order of partitions.
    """

    inputs: tuple[str, ...]
    outputs: tuple[ManifestFileMeta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Replacements that are applied together or not at all.

    One part may have dropped a DELETE entry because another part has dropped the ADD entry of that file.
    """

    parts: tuple[Replacement, ...]


def merge_manifests(
    manifests: Sequence[ManifestFileMeta],
    options: ManifestOptions,
    load: LoadManifest,
    write: WriteManifests,
    *,
    find_holders: FindHolders,
    order: PartitionOrder | None = None,
) -> tuple[Merge, ...]:
    """Choose the manifests that are worth merging (mostly none) and rewrite them.

    Live entries keep their order, unless ``order`` is given. Manifests with fields of a newer release of Paimon are not
    merged.

    Args:
        manifests: base list, then delta list, of the snapshot to build on.
        find_holders: returns a test for manifests that may contain entries of some serialized partitions.
        order: sorts entries that a full merge rewrites, and manifests whose ranges overlap; None for no sorting.

    Returns:
        Replacements with disjoint inputs, for ``apply_merges``.
    """
    full = _full_merge(manifests, options, load, write, find_holders, order)
    if full is not None:
        return (full,)
    merges = []
    for run in _minor_runs(manifests, options):
        merged = merge_entries(entry for meta in run for entry in load(meta))
        if _has_newer(merged.values()):
            continue
        # DELETE entries for files of older manifests are kept, as this run does not contain those manifests.
        merges.append(Merge(parts=(Replacement(inputs=_names(run), outputs=write(tuple(merged.values()))),)))
    return tuple(merges)


def apply_merges(manifests: Sequence[ManifestFileMeta], merges: Sequence[Merge]) -> tuple[ManifestFileMeta, ...]:
    """Return the list with the outputs of each replacement in place of the first of its inputs.

    A merge is skipped if one of its inputs is not in the list any more.
    """
    present = {meta.file_name for meta in manifests}
    outputs: dict[str, tuple[ManifestFileMeta, ...]] = {}
    for merge in merges:
        if all(present.issuperset(part.inputs) for part in merge.parts):
            for part in merge.parts:
                outputs |= dict.fromkeys(part.inputs, ())
                outputs[part.inputs[0]] = part.outputs
    return tuple(each for meta in manifests for each in outputs.get(meta.file_name, (meta,)))


def _full_merge(
    manifests: Sequence[ManifestFileMeta],
    options: ManifestOptions,
    load: LoadManifest,
    write: WriteManifests,
    find_holders: FindHolders,
    order: PartitionOrder | None,
) -> Merge | None:
    target = options.manifest_target_file_bytes
    dirty_bytes = sum(meta.file_size for meta in manifests if _is_dirty(meta, target))
    if dirty_bytes < options.manifest_full_compaction_threshold_bytes:
        return None
    sections = [[meta] for meta in manifests]
    if order is not None:
        sections = order.sections(manifests, options.manifest_sort_max_rewrite_bytes)
    gone = _find_gone(manifests, load, find_holders)
    runs = [
        run for run in _full_runs(sections, gone, target_bytes=target) if len(run) > 1 or gone.get(run[0].file_name)
    ]
    if sum(map(len, runs)) <= 1:
        return None
    parts = []
    for run in runs:
        live = tuple(
            entry
            for meta in run
            for position, entry in enumerate(load(meta))
            if position not in gone.get(meta.file_name, ())
        )
        if _has_newer(live):
            return None
        if order is not None:
            live = order.sort(live)
        parts.append(Replacement(inputs=_names(run), outputs=write(live)))
    return Merge(parts=tuple(parts))


def _find_gone(
    manifests: Sequence[ManifestFileMeta], load: LoadManifest, find_holders: FindHolders
) -> dict[str, set[int]]:
    """Find the entries that cancel each other over all manifests: DELETE entries, and the ADD entries they delete.

    Returns:
        Manifest name to the positions of such entries.
    """
    deletes = [
        entry
        for meta in manifests
        if meta.num_deleted_files > 0
        for entry in load(meta)
        if entry.kind is FileKind.DELETE
    ]
    deleted_names = {entry.file.file_name for entry in deletes}
    gone: dict[str, set[int]] = defaultdict(set)
    added: dict[FileIdentity, tuple[str, int]] = {}
    # Only manifests of the partitions of deleted files, as in the reference: in a large table the others are many.
    may_hold = find_holders(frozenset(entry.partition for entry in deletes))
    for meta in filter(may_hold, manifests) if deletes else ():
        for position, entry in enumerate(load(meta)):
            if entry.file.file_name not in deleted_names:
                continue
            if entry.kind is FileKind.ADD:
                added[entry.identity] = (meta.file_name, position)
                continue
            gone[meta.file_name].add(position)
            if entry.identity in added:
                name, place = added.pop(entry.identity)
                gone[name].add(place)
    return gone


def _full_runs(
    sections: Sequence[Sequence[ManifestFileMeta]], gone: Mapping[str, set[int]], *, target_bytes: int
) -> list[list[ManifestFileMeta]]:
    """Return runs of manifests to rewrite together: dirty ones, those that lose entries, and whole sections.

    A run whose output would be too small includes the clean manifest after it. Otherwise the output would be dirty
    again, and every later commit would rewrite it.

    Args:
        sections: of manifests that are only rewritten together.
    """
    runs: list[list[ManifestFileMeta]] = []
    run: list[ManifestFileMeta] = []
    size = entries = 0
    for section in sections:
        is_clean = len(section) == 1 and not _is_dirty(section[0], target_bytes)
        if is_clean and not gone.get(section[0].file_name):
            if run and (size == 0 or fullness(size, entries, target_bytes) >= _MIN_SPLIT):
                runs.append(run)
                run, size, entries = [], 0, 0
            if not run:
                continue
        for meta in section:
            run.append(meta)
            count, lost = _entry_count(meta), len(gone.get(meta.file_name, ()))
            size += meta.file_size * (count - lost) // max(count, 1)
            entries += count - lost
    return [*runs, run] if run else runs


class PartitionOrder:
    """The order of manifest entries by a partition column, NULL first; entries with equal values keep theirs.

    Args:
        fields: the partition columns.
        place: index of the column.
    """

    def __init__(self, fields: Sequence[DataField], place: int) -> None:
        self._place = place
        self._decode = row_decoder(tuple(field.type for field in fields), [place])
        self._arity = len(fields)
        self._key = cache(self._new_key)

    @classmethod
    def of(cls, schema: TableSchema, options: ManifestOptions) -> PartitionOrder | None:
        """Return the order of a table's options; None if entries are not sorted. Raises ``InvalidOptionError``."""
        names = schema.partition_keys
        column = options.manifest_sort_column or (names[0] if names else None)
        if not options.manifest_sort or column is None:
            return None
        if column not in names:
            raise InvalidOptionError(
                f"option 'manifest-sort.partition-field' = '{column}' is no partition column: expected one of "
                f"{', '.join(names) or 'none, as the table has no partitions'}"
            )
        return cls(schema.partition_fields, names.index(column))

    def sort(self, entries: Sequence[ManifestEntry]) -> tuple[ManifestEntry, ...]:
        """Return the entries in this order."""
        return tuple(sorted(entries, key=lambda entry: self._key(entry.partition)))

    def sections(self, manifests: Sequence[ManifestFileMeta], max_bytes: int) -> list[list[ManifestFileMeta]]:
        """Return the manifests in this order, those together whose ranges overlap in more than a common end.

        Manifests that overlap with too many others, and those without a known range, are alone.

        Args:
            max_bytes: maximum size of those that are together.
        """
        ranges = [(each, meta) for meta in manifests if (each := self._range_of(meta)) is not None]
        alone = [[meta] for meta in manifests if self._range_of(meta) is None]
        sections: list[list[ManifestFileMeta]] = []
        end: tuple[Any, ...] | None = None
        for (low, high), meta in sorted(ranges, key=lambda each: each[0]):
            if end is not None and low < end:
                sections[-1].append(meta)
                end = max(end, high)
            else:
                sections.append([meta])
                end = high
        return alone + [
            part
            for section in sections
            for part in (
                [section] if sum(meta.file_size for meta in section) <= max_bytes else [[meta] for meta in section]
            )
        ]

    def _range_of(self, meta: ManifestFileMeta) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
        stats = meta.partition_stats
        if {arity_of(stats.min_values), arity_of(stats.max_values), len(stats.null_counts)} != {self._arity}:
            return None
        low, high = self._key(stats.min_values), self._key(stats.max_values)
        nulls = stats.null_counts[self._place]
        if nulls is None or (high == _NULL and nulls < _entry_count(meta)):
            return None
        return (_NULL, high) if nulls else (low, high)

    def _new_key(self, partition: bytes) -> tuple[Any, ...]:
        (value,) = self._decode(partition)
        if value is None:
            return _NULL
        return True, float_order(value) if isinstance(value, float) else value


_NULL: Final = (False,)


def _minor_runs(manifests: Sequence[ManifestFileMeta], options: ManifestOptions) -> list[tuple[ManifestFileMeta, ...]]:
    runs: list[tuple[ManifestFileMeta, ...]] = []
    run: list[ManifestFileMeta] = []
    size = entries = 0
    for meta in manifests:
        run.append(meta)
        size += meta.file_size
        entries += _entry_count(meta)
        if fullness(size, entries, options.manifest_target_file_bytes) >= 1:
            if len(run) > 1:
                runs.append(tuple(run))
            run, size, entries = [], 0, 0
    if len(run) >= max(2, options.manifest_merge_min_count):
        runs.append(tuple(_worth_merging(run)))
    return runs


def _worth_merging(run: Sequence[ManifestFileMeta]) -> Sequence[ManifestFileMeta]:
    """Return the end of a run, starting after the last manifest that has more than twice the entries of all after it.

    If only one manifest follows, the whole run is returned.

    The reference rewrites the whole run, so every 30th commit rewrites everything below the target size: 0.3 s on
    10,000 entries, several seconds just below 8 MB. Here a manifest that is merged grows at least by half, so an entry
    is rewritten only a few times in all. The sizes of the manifests that are not merged fall by a factor of three each,
    so there are few of them. Size is measured in entries, since half the bytes of small manifests are their header.
    """
    start = len(run) - 1
    weight = _entry_count(run[start])
    while start > 0 and _entry_count(run[start - 1]) <= 2 * weight:
        start -= 1
        weight += _entry_count(run[start])
    return run[start:] if start < len(run) - 1 else run


def _has_newer(entries: Iterable[ManifestEntry]) -> bool:
    """Whether manifests have fields of a newer release of Paimon, which a merge would drop."""
    return any(entry.file.is_of_newer_release for entry in entries)


def _entry_count(meta: ManifestFileMeta) -> int:
    return meta.num_added_files + meta.num_deleted_files


def _is_dirty(meta: ManifestFileMeta, target_bytes: int) -> bool:
    return meta.num_deleted_files > 0 or fullness(meta.file_size, _entry_count(meta), target_bytes) < 1


def _names(manifests: Sequence[ManifestFileMeta]) -> tuple[str, ...]:
    return tuple(meta.file_name for meta in manifests)

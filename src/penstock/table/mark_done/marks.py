"""Marks of partitions that are done: the file ``_SUCCESS`` in their directories, and a ledger of them.

The ledger is a cache, so that a starting job need not read each mark. The success files contain what it lacks, so
losing it only costs time. It also holds the number of rows of a partition at the time of its mark, which distinguishes
later rows from a compaction even after they were compacted.

Source:
    Paimon ``core:partition/actions/SuccessFileMarkDoneAction.java``, ``PartitionMarkDoneAction.java``;
    docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import to_wall_clock, utc_millis
from penstock.errors import FormatError, InvalidOptionError, NotFoundError, UnsupportedFeatureError
from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import FileSource
from penstock.format.text.json import decode_json, encode_json
from penstock.options import MarkDoneAction, RetentionOptions
from penstock.table.bulk_files import map_parallel, thread_count
from penstock.table.partition_scope import partition_of_spec, partition_test, scope_of_specs
from penstock.table.read.live import load_live_entries, load_live_of_partitions
from penstock.table.ref import FileLocator
from penstock.table.success import find_success, write_success

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.format.success_file import SuccessFile
    from penstock.io.file_io import FileIO
    from penstock.options import MarkDoneOptions
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_CHECKED: Final = "lookedMillis"
_NEXT_DUE: Final = "nextDue"
_PARTITIONS: Final = "partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A partition as it was when it was marked.

    Attributes:
        rows: in its live files.
        millis: time of the mark, ms since 1970-01-01 UTC.
    """

    rows: int
    millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The cached marks of a table.

    Attributes:
        checked_millis: when a job last checked all partitions, ms since 1970-01-01 UTC; 0 for never.
        next_due: time of the configured clock at which the first pending partition becomes done; None if there was
            none.
        partitions: by directory.
    """

    checked_millis: int = 0
    next_due: int | None = None
    partitions: Mapping[str, Marked] = field(default_factory=dict)


def load_ledger(file_io: FileIO, location: str) -> Ledger:
    """Load the cache; empty if the file is missing or damaged."""
    path = TableLayout(location).done_ledger_path
    try:
        json = decode_json(file_io.read(path), "ledger of done partitions", path)
        return Ledger(
            checked_millis=json.integer(_CHECKED),
            next_due=json.optional_integer(_NEXT_DUE),
            partitions={
                directory: Marked(rows=int(rows), millis=int(millis))
                for directory, (rows, millis) in dict(json.values[_PARTITIONS]).items()
            },
        )
    except (NotFoundError, FormatError, KeyError, TypeError, ValueError):
        return Ledger()


def save_ledger(file_io: FileIO, location: str, ledger: Ledger) -> None:
    """Replace the cache. If two jobs do so at once, the last content wins."""
    partitions = {directory: [each.rows, each.millis] for directory, each in sorted(ledger.partitions.items())}
    values = {_CHECKED: ledger.checked_millis, _NEXT_DUE: ledger.next_due, _PARTITIONS: partitions}
    file_io.write(TableLayout(location).done_ledger_path, encode_json(values))


def add_to_ledger(file_io: FileIO, location: str, marked: Mapping[str, Marked]) -> None:
    """Add partitions that were marked, by directory."""
    known = load_ledger(file_io, location)
    save_ledger(file_io, location, replace(known, partitions={**known.partitions, **marked}))


_WHY: Final = {
    MarkDoneAction.DONE_PARTITION: "needs a metastore, which no table has here",
    MarkDoneAction.MARK_EVENT: "needs a metastore, which no table has here",
    MarkDoneAction.HTTP_REPORT: "sends requests, which no commit does here",
    MarkDoneAction.CUSTOM: "names a Java class",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePartition:
    """A partition that has files.

    Attributes:
        data: serialized BinaryRow of its values.
        directory: such as ``dt=2026-01-01/hour=5``.
        rows: in its files.
        written_millis: creation time of its newest file that is not the result of a compaction, the writer's wall clock
            as ms since 1970-01-01; None if there is no such file.
    """

    data: bytes
    directory: str
    rows: int
    written_millis: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DonePartition:
    """A partition that was marked done, or would be.

    Attributes:
        directory: such as ``dt=2026-01-01/hour=5``.
        rows: in its live files; 0 if it has none.
        creation_millis: time of its first mark, ms since 1970-01-01 UTC.
        modification_millis: time of its last mark.
    """

    directory: str
    rows: int
    creation_millis: int
    modification_millis: int


def check_actions(options: MarkDoneOptions, table: str) -> None:
    """Refuse unsupported ways of marking partitions."""
    for action in options.actions:
        if action is not MarkDoneAction.SUCCESS_FILE:
            raise UnsupportedFeatureError(
                f"table {table}: option 'partition.mark-done-action' = '{action}' {_WHY[action]}: take 'success-file', "
                "with with_options for this job alone"
            )


def load_live_partitions(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot, partitions: frozenset[bytes] | None = None
) -> dict[bytes, LivePartition]:
    """Load partitions of a snapshot by their serialized values.

    Args:
        partitions: only these, which reads few manifests; None for all.
    """
    entries: Mapping[FileIdentity, ManifestEntry] = (
        load_live_entries(store, snapshot)
        if partitions is None
        else load_live_of_partitions(store, ref.schema, snapshot, partitions)
    )
    groups: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries.values():
        groups.setdefault(entry.partition, []).append(entry)
    locator = FileLocator.of(ref)
    return {
        data: LivePartition(
            data=data,
            directory=locator.partition_name(data),
            rows=sum(entry.file.row_count for entry in group),
            written_millis=_written_millis(group),
        )
        for data, group in groups.items()
    }


def _written_millis(entries: Iterable[ManifestEntry]) -> int | None:
    return max(
        (entry.file.creation_millis or 0 for entry in entries if entry.file.file_source is not FileSource.COMPACT),
        default=None,
    )


def find_partitions(
    ref: TableRef, store: MetadataStore, specs: Sequence[Mapping[str, object]]
) -> tuple[LivePartition, ...]:
    """Find the partitions that match at least one spec, sorted by their directories.

    A spec that names all columns selects its partition even without rows: a day without rows can be done.

    Args:
        specs: partition column to value, as for ``scope_of_specs``.
    """
    if not specs or any(not spec for spec in specs):
        raise InvalidOptionError(f"table {ref.name}: name the partitions to mark, such as {{'dt': '2026-01-01'}}")
    snapshot = store.load_latest_snapshot()
    live = {} if snapshot is None else load_live_partitions(ref, store, snapshot)
    found: dict[str, LivePartition] = {}
    for spec in specs:
        test = partition_test(scope_of_specs(ref, [spec]), touched=frozenset(), ref=ref)
        matching = [each for data, each in live.items() if test(data)]
        if not matching and len(spec) == len(ref.schema.partition_keys):
            data = partition_of_spec(ref, spec)
            directory = FileLocator.of(ref).partition_name(data)
            matching = [LivePartition(data=data, directory=directory, rows=0, written_millis=None)]
        if not matching:
            raise NotFoundError(
                f"table {ref.name}: no partition agrees with {dict(spec)}; to mark one without rows, name all of "
                + ", ".join(ref.schema.partition_keys)
            )
        found |= {each.directory: each for each in matching}
    return tuple(found[directory] for directory in sorted(found))


def mark_done(
    ref: TableRef, partitions: Sequence[LivePartition], *, now_millis: int | None = None, dry_run: bool = False
) -> tuple[DonePartition, ...]:
    """Mark partitions done, one after another; already marked ones are marked again.

    The caller adds them to the ledger.

    Args:
        now_millis: time of the mark, ms since 1970-01-01 UTC; None for the current time.
        dry_run: only return what would be written.
    """
    now = utc_millis() if now_millis is None else now_millis
    done: list[DonePartition] = []
    for partition in partitions:
        path = ref.layout.partition_success_path(partition.directory)
        if dry_run:
            known = find_success(ref.file_io, path)
            created = now if known is None else known.creation_millis
        else:
            created = write_success(ref.file_io, path, now).creation_millis
        done.append(
            DonePartition(
                directory=partition.directory, rows=partition.rows, creation_millis=created, modification_millis=now
            )
        )
    return tuple(done)


def ledger_entries(done: Iterable[DonePartition]) -> dict[str, Marked]:
    """Return the cache entries of partitions that were marked."""
    return {each.directory: Marked(rows=each.rows, millis=each.modification_millis) for each in done}


def is_in_ledger(partition: LivePartition, ledger: Ledger) -> bool:
    """Whether the ledger's entry of a partition is current: the same number of rows, none later than the mark."""
    entry = ledger.partitions.get(partition.directory)
    return entry is not None and entry.rows == partition.rows and _is_current(entry.millis, partition)


def load_marked(ref: TableRef, partitions: Sequence[LivePartition], ledger: Ledger) -> dict[str, Marked]:
    """Load the marks of partitions that have one since their last rows, by directory.

    If the ledger's entry is missing or outdated, the success file is read, several in parallel.
    """
    unsure = [each for each in partitions if not is_in_ledger(each, ledger)]
    paths = [ref.layout.partition_success_path(each.directory) for each in unsure]
    threads = thread_count(ref.parsed(RetentionOptions).file_operation_threads, ref.file_io)
    found = map_parallel(lambda path: find_success(ref.file_io, path), paths, threads=threads)
    marked = {
        each.directory: Marked(rows=each.rows, millis=success.modification_millis)
        for each, success in zip(unsure, found, strict=True)
        if success is not None and _covers(success, each, ledger.partitions.get(each.directory))
    }
    unknown = {each.directory for each in unsure}
    known = {each.directory: ledger.partitions[each.directory] for each in partitions if each.directory not in unknown}
    return {**known, **marked}


def _covers(success: SuccessFile, partition: LivePartition, entry: Marked | None) -> bool:
    # The ledger's mark was for other rows: only a later mark by another job counts.
    is_other = entry is None or success.modification_millis > entry.millis
    return is_other and _is_current(success.modification_millis, partition)


def _is_current(mark_millis: int, partition: LivePartition) -> bool:
    """Whether a mark is not older than a partition's files, ignoring merged files, which have the time of an input."""
    return partition.written_millis is None or partition.written_millis <= to_wall_clock(mark_millis)

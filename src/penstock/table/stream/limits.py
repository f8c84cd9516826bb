"""Limits on the size of one micro-batch, and the bounds at which a stream ends.

Source:
    Paimon ``spark:SparkConnectorOptions.java``, the short names are Delta's;
    ``core:table/source/snapshot/BoundedChecker.java``, docs/spec/streaming.md section 2.3. Bounds by snapshot and by
    time are specific to Penstock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.errors import InvalidOptionError
from penstock.table.read.travel import watermark_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.options import StreamOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a micro-batch, which ends at the first one reached; None for no limit.

    Attributes:
        max_files: data files.
        max_bytes: size of the data files on storage.
        max_rows: rows in the data files, before any filter.
        max_snapshots: snapshots from which files are taken.
        min_rows: minimum rows of a micro-batch; with fewer it waits until ``max_delay_ms`` have passed.
        max_delay_ms: longest such wait.
    """

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    max_snapshots: int | None = None
    min_rows: int | None = None
    max_delay_ms: int | None = None


NO_LIMITS = ReadLimits()


def limits_of(options: StreamOptions) -> ReadLimits:
    """Return the limits that the options set."""
    if (options.min_rows_per_trigger is None) != (options.max_trigger_delay_ms is None):
        raise InvalidOptionError(
            "options 'read.stream.minRowsPerTrigger' and 'read.stream.maxTriggerDelayMs' belong together: the first "
            "sets how many rows a micro-batch waits for, the second how long; set both or neither"
        )
    return ReadLimits(
        max_files=options.max_files_per_trigger,
        max_bytes=options.max_bytes_per_trigger,
        max_rows=options.max_rows_per_trigger,
        max_snapshots=options.max_snapshot_count if options.max_snapshot_count > 0 else None,
        min_rows=options.min_rows_per_trigger,
        max_delay_ms=options.max_trigger_delay_ms,
    )


@dataclass(slots=True, kw_only=True)
class Budget:
    """The amount that a micro-batch has taken so far.

    Attributes:
        limits: of the micro-batch.
        snapshots: number of snapshots from which files were taken.
    """

    limits: ReadLimits
    snapshots: int = 0
    files: int = 0
    bytes: int = 0
    rows: int = 0

    @property
    def has_room(self) -> bool:
        """Whether files of one more snapshot may be taken."""
        return self.limits.max_snapshots is None or self.snapshots < self.limits.max_snapshots

    def fits(self, files: Iterable[DataFileMeta]) -> bool:
        """Whether these files may be taken too; always true for the first files of a micro-batch."""
        taken = tuple(files)
        return not self.files or not (
            _exceeds(self.files + len(taken), self.limits.max_files)
            or _exceeds(self.bytes + sum(file.file_size for file in taken), self.limits.max_bytes)
            or _exceeds(self.rows + sum(file.row_count for file in taken), self.limits.max_rows)
        )

    def take(self, files: Iterable[DataFileMeta]) -> None:
        """Add files to the amount taken."""
        for file in files:
            self.files += 1
            self.bytes += file.file_size
            self.rows += file.row_count

    @property
    def is_too_little(self) -> bool:
        """Whether there are rows, but fewer than the micro-batch waits for."""
        return self.limits.min_rows is not None and 0 < self.rows < self.limits.min_rows


def _exceeds(amount: int, limit: int | None) -> bool:
    return limit is not None and amount > limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a stream; None for no such bound.

    Attributes:
        watermark: last watermark of a snapshot to deliver, ms of event time.
        time_millis: last commit time of a snapshot to deliver, ms since 1970-01-01 UTC.
        last_id: the last snapshot to deliver.
    """

    watermark: int | None
    time_millis: int | None
    last_id: int | None

    @classmethod
    def of(cls, options: StreamOptions, last_id: int | None) -> Self:
        """Return the bounds of the options, and of the last snapshot id that ``scan.bounded`` fixed at the start."""
        ids = [each for each in (options.bounded_snapshot_id, last_id) if each is not None]
        return cls(
            watermark=options.bounded_watermark,
            time_millis=options.bounded_timestamp_millis,
            last_id=min(ids, default=None),
        )

    @staticmethod
    def describe(options: StreamOptions) -> str:
        """Return the bounds in the options as text; empty if there are none."""
        given = {
            "scan.bounded": None if options.bounded is None else str(options.bounded).lower(),
            "scan.bounded.watermark": options.bounded_watermark,
            "penstock.scan.bounded.snapshot-id": options.bounded_snapshot_id,
            "penstock.scan.bounded.timestamp-millis": options.bounded_timestamp_millis,
        }
        return ", ".join(f"'{key}' = '{value}'" for key, value in given.items() if value is not None)

    def is_beyond(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot's watermark or commit time is beyond a bound."""
        watermark = watermark_of(snapshot)
        return (self.watermark is not None and watermark is not None and watermark > self.watermark) or (
            self.time_millis is not None and snapshot.time_millis > self.time_millis
        )

    def is_beyond_id(self, snapshot_id: int) -> bool:
        """Whether a snapshot id is beyond the last one to deliver; the snapshot need not exist."""
        return self.last_id is not None and snapshot_id > self.last_id

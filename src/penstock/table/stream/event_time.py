"""Computes the watermarks of a stream's buckets from the statistics of its files, without reading rows.

If a table declares a watermark, each bucket's watermark is the latest event time of the delivered rows minus the
declared delay. It advances only at the end of a snapshot: within a snapshot, especially in the full phase, partitions
are not delivered in event time order, so later rows may be older.

Source:
    Flink's ``WATERMARK FOR`` as Paimon stores it (docs/spec/streaming.md section 8); docs/spec/streaming.md section
    6.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.format.watermark import declared_watermark
from penstock.printable import open_log
from penstock.table.read.prune import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.watermark import DeclaredWatermark
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.offset import BucketWatermarks

_LOG: Final = open_log(__name__)
_NANOS_PER_MILLI: Final = 1_000_000


def usable_watermark(ref: TableRef) -> DeclaredWatermark | None:
    """Return the watermark that a table declares; None if there is none, or Penstock cannot compute it.

    Penstock does not evaluate Flink's computed columns, nor any expression other than a delay.
    """
    declared = declared_watermark(ref.schema.option_map)
    if declared is None or declared.delay_millis is None or declared.column not in ref.schema.field_names:
        return None
    return declared


class EventTimes:
    """Computes the watermarks of a stream's buckets snapshot by snapshot. Not for several threads.

    Args:
        ref: its schema declares the watermark, or none.
    """

    def __init__(self, ref: TableRef, store: MetadataStore) -> None:
        self._ref = ref
        declared = self._declared = usable_watermark(ref)
        fields = [field for field in ref.schema.fields if declared is not None and field.name == declared.column]
        self._reader = ColumnStatsReader(store.load_schema, fields)
        self._has_warned = False

    def advance(self, known: BucketWatermarks | None, entries: Iterable[ManifestEntry]) -> BucketWatermarks | None:
        """Return the watermarks after a snapshot.

        Args:
            known: the watermarks before it; None where none was declared.
            entries: the delivered files of the snapshot.

        Returns:
            Watermarks by bucket, ms of event time, without the buckets that have no time yet. None where the table
            declares no watermark.
        """
        if self._declared is None:
            return None
        found = dict(known or ())
        for entry in entries:
            millis = self.latest_millis(entry.file)
            if millis is not None:
                found[entry.bucket] = max(millis, found.get(entry.bucket, millis))
        return tuple(sorted(found.items()))

    def latest_millis(self, file: DataFileMeta) -> int | None:
        """Return the latest event time of a file minus the delay, ms; None if it has none or no statistics for it."""
        declared = self._declared
        if declared is None:
            return None
        stats = self._reader.read(file).get(declared.column)
        if stats is not None and isinstance(stats.max, int):
            return stats.max // _NANOS_PER_MILLI - (declared.delay_millis or 0)
        if file.row_count and (stats is None or stats.null_count != file.row_count):
            self._warn(file, declared)
        return None

    def _warn(self, file: DataFileMeta, declared: DeclaredWatermark) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        _LOG.warning(
            "table %s: file %s keeps no largest value of the event time column '%s', so the watermark of its bucket "
            "does not move; write Parquet or Avro, with another 'metadata.stats-mode' than 'none' and 'counts'",
            self._ref.name,
            file.file_name,
            declared.column,
        )

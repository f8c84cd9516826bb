"""How far event time has come in a stream, told from the statistics of its files and not from its rows.

A table that declares a watermark keeps, for each bucket, the largest event time of what is delivered, less the declared
delay. It moves at the ends of snapshots only: inside of one, and in the full phase above all, partitions come in an
order of their own, and rows that come later may be older.

Source:
    Flink's ``WATERMARK FOR`` as Paimon keeps it (docs/spec/streaming.md section 8); docs/spec/streaming.md section 6.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.format.watermark import declared_watermark
from penstock.printable import open_log
from penstock.table.read.column_stats import ColumnStatsReader

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
    """Return the watermark that a table declares, if it can be told here.

    Flink's computed columns are not there, nor can expressions other than a delay be evaluated.
    """
    declared = declared_watermark(ref.schema.option_map)
    if declared is None or declared.delay_millis is None or declared.column not in ref.schema.field_names:
        return None
    return declared


class EventTimes:
    """Moves the watermarks of a stream's buckets over snapshots. Not for several threads.

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
        """Return the watermarks behind a snapshot.

        Args:
            known: before it; None where none was declared.
            entries: the files of the snapshot that are delivered.

        Returns:
            By bucket, ms of event time; buckets without a time yet are not there. None where the table declares none.
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
        """Return the latest event time of a file, less the delay, ms; None where it has none, or does not say."""
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

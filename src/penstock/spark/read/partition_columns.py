"""Whether data files have the partition columns, which Spark's readers take from the files.

Writers of append tables store them like other columns, but the files of a migrated directory (``Catalog.migrate`` or
Paimon's ``migrate_table``) lack them: their values are those of the partition, and Spark would read NULL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from penstock.datafile.parquet.footer import load_column_names
from penstock.format.file_format import FileFormat, format_of
from penstock.table.external_paths import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# A footer is read in about a millisecond.
_MOST_FOOTERS: Final = 1_000


class PartitionColumns:
    """Checks the files of one read: by statistics in the manifest, otherwise by Parquet footers.

    Args:
        fields: columns to read.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, fields: Sequence[DataField]) -> None:
        self._ref = ref
        self._store = store
        wanted = {field.name for field in fields}
        self.names = tuple(key for key in ref.schema.partition_keys if key in wanted)
        self._places: dict[int, tuple[int, ...]] = {}
        self._footers = 0

    def are_in(self, split: DataSplit, file: DataFileMeta) -> bool:
        """Return whether the file certainly has the partition columns that are read."""
        if not self.names or self._have_statistics(file):
            return True
        if format_of(file.file_name) is not FileFormat.PARQUET or self._footers >= _MOST_FOOTERS:
            return False
        self._footers += 1
        path = split.path_of(file, ExternalPaths.of(self._ref))
        return _columns(cast("Hashable", self._ref.file_io), path).issuperset(self.names)

    def _have_statistics(self, file: DataFileMeta) -> bool:
        if file.value_stats_cols is not None:
            return all(name in file.value_stats_cols for name in self.names)
        if file.schema_id not in self._places:
            is_today = file.schema_id == self._ref.schema.id
            stored = self._ref.schema.fields if is_today else self._store.load_schema(file.schema_id).fields
            self._places[file.schema_id] = tuple(
                place for place, field in enumerate(stored) if field.name in self.names
            )
        counts = file.value_stats.null_counts
        return all(place < len(counts) and counts[place] is not None for place in self._places[file.schema_id])


@lru_cache(maxsize=100_000)
def _columns(file_io: Hashable, path: str) -> frozenset[str]:
    """Return the columns of a Parquet file; data files never change, so the result is cached."""
    return load_column_names(cast("FileIO", file_io), path)

"""Pruning of files by the indexes in their manifest entries, which other engines write.

Source:
    Paimon ``core:operation/AppendOnlyFileStoreScan.java`` (``testFileIndex``); design/0059.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.format.file_index import decode_file_index, may_hold
from penstock.options import ReadOptions
from penstock.predicate.evaluate import allowed_values
from penstock.table.read.column_stats import is_same_but_nulls

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import BoundPredicate
    from penstock.table.ref import TableRef


class FileIndexPruner:
    """Prunes files of which an index says that they hold none of the values that a filter allows in a column.

    Args:
        load_schema: loads a schema by id.
    """

    def __init__(self, ref: TableRef, load_schema: Callable[[int], TableSchema]) -> None:
        self._load_schema = load_schema
        self._is_enabled = ref.parsed(ReadOptions).file_index_enabled

    def keeps(self, file: DataFileMeta, predicate: BoundPredicate) -> bool:
        """Whether the file may contain a row that passes the filter.

        Args:
            predicate: bound to the read schema, without partition columns.
        """
        if file.embedded_file_index is None or not self._is_enabled or not predicate.fields:
            return True
        pinned = [(field, allowed_values(predicate.root, field.name)) for field in predicate.fields]
        if all(values is None for _, values in pinned):
            return True
        indexes = decode_file_index(file.embedded_file_index)
        for field, values in pinned:
            stored = self._stored(file.schema_id, field)
            if values is None or stored is None or stored.name not in indexes:
                continue
            if not may_hold(indexes[stored.name], stored.type, values):
                return False
        return True

    def _stored(self, schema_id: int, field: DataField) -> DataField | None:
        """Return a column as the file has it; None if it has none of the same type."""
        for stored in self._load_schema(schema_id).fields:
            if stored.id == field.id:
                return stored if is_same_but_nulls(stored.type, field.type) else None
        return None

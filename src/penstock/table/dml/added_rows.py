"""The check that a change adds no row that breaks a rule for new rows, while rows that break it already may stay.

For UPDATE and MERGE, Spark rewrites all rows of a file and does not say which ones it has changed. So the rows that
break a rule are compared with those of the files that were read.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock.datafile.conform import without_padding
from penstock.datafile.types import to_arrow_type
from penstock.errors import SchemaMismatchError
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.read.batches import TableReader
from penstock.table.read.prune import NO_FILTER, ColumnStatsReader
from penstock.table.read.split import make_unfiltered_split
from penstock.table.write.check_rows import conform_batch, has_limit, has_nested_not_null, plan_conform

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.table.message import CommitMessage
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_THREADS: Final = 4


def check_added_rows(
    ref: TableRef, store: MetadataStore, before: Iterable[DataSplit], written: Iterable[CommitMessage]
) -> None:
    """Raise if written files have a row with a forbidden NULL, or a value that is too long, that did not exist before.

    Args:
        before: the files that were read.
        written: the files that replace them.

    Raises:
        SchemaMismatchError: there is such a row.
    """
    rules = _Rules(ref, store)
    if not rules.fields:
        return
    added = Counter(rules.broken_rows(make_unfiltered_split(ref, each, each.new_files) for each in written))
    if added:
        added.subtract(rules.broken_rows(before))
    for row, count in added.items():
        if count > 0:
            rules.raise_for(row)


class _Rules:
    """NOT NULL and lengths of a table's columns, found in its files.

    Attributes:
        fields: the columns with a rule.
    """

    def __init__(self, ref: TableRef, store: MetadataStore) -> None:
        schema = replace(ref.schema, fields=tuple(replace(each, default_value=None) for each in ref.schema.fields))
        self._ref = ref
        self.fields = tuple(field for field in schema.fields if not field.type.nullable or _is_limited(field))
        self._only_nulls = not any(map(_is_limited, self.fields))
        self._required = [field.name for field in self.fields if not field.type.nullable]
        names = tuple(field.name for field in self.fields)
        self._stats = ColumnStatsReader(store.load_schema, self.fields)
        self._probe = TableReader(for_existing_rows(ref), store, names)
        self._rows = TableReader(for_existing_rows(ref), store)
        # Without the other columns, whose types may be such that they cannot be checked.
        self._schema = replace(schema, fields=self.fields, partition_keys=(), primary_keys=())
        self._plan = plan_conform(self._schema, self._probe.schema, ref.name)
        self._examples: dict[str, pa.RecordBatch] = {}

    def broken_rows(self, splits: Iterable[DataSplit]) -> Iterator[str]:
        """Yield each row that breaks a rule as text."""
        whole = (replace(split, rest=NO_FILTER) for split in splits)
        files = [(split, file) for split in whole for file in split.files if self._may_break(file)]
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            answers = pool.map(lambda each: any(map(self._breaks, self._probe.read_file(*each))), files)
            broken = [each for each, answer in zip(files, answers, strict=True) if answer]
        for each in broken:
            for batch in self._rows.read_file(*each):
                yield from self._broken_in(batch)

    def raise_for(self, row: str) -> None:
        """Raise the error of a row."""
        conform_batch(self._examples[row], self._plan)

    def _may_break(self, file: DataFileMeta) -> bool:
        if not self._only_nulls:
            return True
        known = self._stats.read(file)
        found = (known.get(name) for name in self._required)
        return not all(stats is not None and stats.null_count == 0 for stats in found)

    def _broken_in(self, batch: pa.RecordBatch) -> Iterator[str]:
        names = [field.name for field in self.fields]
        checked = batch.select(names)
        is_null = np.zeros(batch.num_rows, dtype=bool)
        for name in self._required:
            is_null |= checked.column(name).is_null().to_numpy(zero_copy_only=False)
        others = np.flatnonzero(~is_null)
        places = [
            *np.flatnonzero(is_null),
            *(others[place] for place in self._search(checked.take(pa.array(others, pa.int64())))),
        ]
        # Spark pads CHAR, also in rows that it does not change.
        rows = without_padding(batch.take(pa.array(places, pa.int64())), self._ref.schema.fields)
        for place, row in zip(places, rows.to_pylist(), strict=True):
            text = repr(row)
            self._examples.setdefault(text, checked.slice(place, 1))
            yield text

    def _search(self, batch: pa.RecordBatch, start: int = 0) -> list[int]:
        """Return the places of the rows that break a rule, by halving."""
        if not batch.num_rows or not self._breaks(batch):
            return []
        if batch.num_rows == 1:
            return [start]
        half = batch.num_rows // 2
        return [*self._search(batch.slice(0, half), start), *self._search(batch.slice(half), start + half)]

    def _breaks(self, batch: pa.RecordBatch) -> bool:
        try:
            conform_batch(batch, self._plan)
        except SchemaMismatchError:
            return True
        return False


def _is_limited(field: DataField) -> bool:
    return has_limit(field.type) or has_nested_not_null(to_arrow_type(field.type))

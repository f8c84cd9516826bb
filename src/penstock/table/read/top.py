"""Skip files that have none of the first rows of an order, by the statistics of a column.

Source:
    Paimon ``core:table/source/TopNDataSplitEvaluator.java``, which does so for a split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.stats import ColumnStats
    from penstock.table.read.prune import ColumnStatsReader
    from penstock.table.read.split import DataSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The first rows of an order; further columns of the order do not matter here.

    Attributes:
        column: by which rows are sorted first.
        rows: how many.
    """

    column: str
    descends: bool
    nulls_first: bool
    rows: int

    def __str__(self) -> str:
        """Return the text for ``explain``."""
        direction, nulls = ("DESC" if self.descends else "ASC"), ("FIRST" if self.nulls_first else "LAST")
        return f"first {self.rows} by {self.column} {direction} NULLS {nulls}"


def files_of_top(splits: Sequence[DataSplit], reader: ColumnStatsReader, top: Top) -> tuple[DataSplit, ...]:
    """Return the splits without files whose rows all come after as many rows of other files.

    Args:
        reader: of the column, whose values compare like their statistics.
    """
    # Not by the names of files: those of an adopted directory may have equal ones in several partitions.
    stats = [[reader.read(file).get(top.column) for file in split.files] for split in splits]
    limit = _limit(splits, stats, top)
    if limit is None:
        return tuple(splits)
    kept = []
    for split, known in zip(splits, stats, strict=True):
        pairs = zip(split.files, known, strict=True)
        files = tuple(file for file, each in pairs if _may_have(each, file.row_count, limit, top))
        if files:
            names = {file.file_name for file in files}
            vectors = tuple(each for each in split.vectors if each[0] in names)
            kept.append(replace(split, files=files, vectors=vectors))
    return tuple(kept)


def _limit(splits: Sequence[DataSplit], stats: Sequence[Sequence[ColumnStats | None]], top: Top) -> Any:  # noqa: ANN401 - a value
    """Return a value that enough rows reach, in the order; None if that is unknown."""
    found: list[tuple[Any, int]] = []
    for split, each in zip(splits, stats, strict=True):
        # How many rows a filter or a deletion vector leaves is not known before they are read.
        uncounted = {name for name, _ in split.vectors}
        for file, known in zip(split.files, each, strict=True):
            count = _values(known, file)
            if count and known is not None and split.rest.is_always_true and file.file_name not in uncounted:
                found.append((known.min if top.descends else known.max, count))
    found.sort(key=lambda each: each[0], reverse=top.descends)
    rows = 0
    for value, count in found:
        rows += count
        if rows >= top.rows:
            return value
    return None


def _values(stats: ColumnStats | None, file: DataFileMeta) -> int:
    """Return how many rows certainly have values between the statistics."""
    if stats is None or stats.null_count is None or stats.min is None or stats.max is None:
        return 0
    return file.row_count - stats.null_count


def _may_have(stats: ColumnStats | None, rows: int, limit: Any, top: Top) -> bool:  # noqa: ANN401 - a value
    """Whether a file may have one of the first rows, all of which reach the limit or, if they come first, are null."""
    if stats is None or stats.null_count is None or (top.nulls_first and stats.null_count):
        return True
    if stats.null_count == rows:
        return False
    end: Any = stats.max if top.descends else stats.min
    return end is None or bool(end >= limit if top.descends else end <= limit)

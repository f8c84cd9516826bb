"""Files of several manifests as columns, of which few become objects.

Source:
    Paimon ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4; design/0093.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from penstock.format.manifest.entry import ManifestEntry, merge_entries

if TYPE_CHECKING:
    from penstock.format.avro.columns import Array
    from penstock.format.manifest.columns import ManifestColumns

_INT64_MAX: Final = (1 << 63) - 1


class FileColumns:
    """Some of the entries of several manifests.

    Args:
        parts: the entries of each manifest.
        rows: ascending numbers of the entries, counted over all parts.
    """

    __slots__ = ("parts", "rows")

    def __init__(self, parts: tuple[ManifestColumns, ...], rows: Array) -> None:
        self.parts = parts
        self.rows = rows

    @classmethod
    def added(cls, manifests: Iterable[ManifestColumns]) -> FileColumns:
        """Return the ADD entries of manifests."""
        parts = tuple(manifests)
        return cls(parts, np.flatnonzero(~_concatenate([part.is_delete for part in parts], bool)))

    @classmethod
    def live(cls, manifests: Iterable[ManifestColumns]) -> FileColumns:
        """Return the ADD entries that no DELETE entry cancels.

        Only entries whose name, by its hash, occurs twice are decoded and compared.

        Args:
            manifests: in the order of the manifest lists.

        Raises:
            FormatError: a file is added twice.
        """
        files = cls.added(manifests)
        parts = files.parts
        hashes = _concatenate([part.name_hash for part in parts], np.uint64)
        ascending = np.sort(hashes)
        repeated = ascending[1:][ascending[1:] == ascending[:-1]]
        if not len(repeated):
            return files
        # One entry may be in several manifests: it survives once, where it was added last.
        suspects = cls(parts, np.flatnonzero(np.isin(hashes, repeated)))
        entries = suspects.entries()
        rows = {id(entry): row for entry, row in zip(entries, suspects.rows.tolist(), strict=True)}
        survivors = [rows[id(entry)] for entry in merge_entries(entries).values()]
        is_live = np.zeros(len(hashes), bool)
        is_live[files.rows] = True
        is_live[suspects.rows] = False
        is_live[survivors] = True
        is_live &= ~_concatenate([part.is_delete for part in parts], bool)
        return cls(parts, np.flatnonzero(is_live))

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.rows)

    def column(self, name: str) -> Array:
        """Return a column of ``ManifestColumns``, with one value per file."""
        if not self.parts:
            return np.zeros(0, np.int64)
        whole = np.concatenate([getattr(part, name) for part in self.parts])
        return whole if len(whole) == len(self.rows) else whole[self.rows]

    def total(self, name: str) -> int:
        """Return the sum of a column."""
        return total(self.column(name))

    def partitions(self) -> tuple[tuple[bytes, ...], Array]:
        """Return the distinct serialized partitions, in order of first occurrence, and for each file its index."""
        known: dict[bytes, int] = {}
        codes = []
        for part in self.parts:
            numbers = np.array([known.setdefault(each, len(known)) for each in part.partitions], np.int32)
            codes.append(numbers[part.partition])
        of_files = _concatenate(codes, np.int32)[self.rows]
        # The last value that is assigned remains, so that of the first file is assigned last.
        first = np.full(len(known), len(of_files))
        first[of_files[::-1]] = np.arange(len(of_files))[::-1]
        order = np.argsort(first, kind="stable")
        order = order[first[order] < len(of_files)]
        renumbered = np.zeros(len(known), np.int32)
        renumbered[order] = np.arange(len(order))
        names = list(known)
        return tuple(names[code] for code in order.tolist()), renumbered[of_files]

    def where(self, chosen: Array) -> FileColumns:
        """Return some of the files; ``chosen`` has one value per file."""
        return self if chosen.all() else FileColumns(self.parts, self.rows[chosen])

    def at(self, places: Array) -> FileColumns:
        """Return the files at some places, which ascend."""
        return FileColumns(self.parts, self.rows[places])

    def by_part(self) -> Iterator[tuple[ManifestColumns, Array]]:
        """Yield each manifest that has some of the files, and the numbers of their entries in it."""
        first_row = 0
        for part in self.parts:
            start, end = np.searchsorted(self.rows, [first_row, first_row + len(part)]).tolist()
            if end > start:
                yield part, self.rows[start:end] - first_row
            first_row += len(part)

    def entries(self) -> list[ManifestEntry]:
        """Decode the files, in order."""
        return [entry for part, rows in self.by_part() for entry in part.entries(rows)]


class LazyEntries(Sequence[ManifestEntry]):
    """Entries that are decoded when they are first used, and kept.

    Args:
        files: the entries.
    """

    __slots__ = ("_entries", "files")

    def __init__(self, files: FileColumns) -> None:
        self.files = files
        self._entries: tuple[ManifestEntry, ...] | None = None

    def __len__(self) -> int:
        """Return their number, without decoding them."""
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ManifestEntry]: ...
    def __getitem__(self, index: int | slice) -> ManifestEntry | Sequence[ManifestEntry]:
        """Return one or some of them."""
        return self._decoded()[index]

    def __iter__(self) -> Iterator[ManifestEntry]:
        """Iterate over them."""
        return iter(self._decoded())

    def _decoded(self) -> tuple[ManifestEntry, ...]:
        if self._entries is None:
            self._entries = tuple(self.files.entries())
        return self._entries


def total(column: Array) -> int:
    """Return the sum of integers, however large."""
    if not len(column):
        return 0
    largest = max(abs(int(column.max())), abs(int(column.min())))
    return int(column.sum(dtype=np.int64)) if largest * len(column) <= _INT64_MAX else sum(column.tolist())


def count_pairs(first: Array, second: Array) -> int:
    """Return the number of distinct pairs of values; ``first`` has small numbers, from 0."""
    if not len(first):
        return 0
    lowest, highest = int(second.min()), int(second.max())
    width = highest - lowest + 1
    if width > 1 << 20:
        return len(set(zip(first.tolist(), second.tolist(), strict=True)))
    return len(np.unique(first.astype(np.int64) * width + (second - lowest)))


def count_values(codes: Array) -> int:
    """Return the number of distinct values; they are small numbers, from 0."""
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0


def _concatenate(arrays: Sequence[Array], dtype: Any) -> Array:  # noqa: ANN401 - a type of numpy
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)

"""Files of several manifests as columns, of which few become objects.

Source:
    Paimon ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4; design/0093.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from penstock.format.manifest.entry import DataFileMeta, ManifestEntry, merge_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.columns import ManifestColumns

_INT64_MAX: Final = (1 << 63) - 1
_MAX_BUCKETS: Final = 1 << 20


class FileColumns:
    """Some of the entries of several manifests.

    Args:
        parts: the entries of each manifest.
        rows: ascending numbers of the entries, counted over all parts.
    """

    __slots__ = ("_first_rows", "_whole", "parts", "rows")

    def __init__(self, parts: tuple[ManifestColumns, ...], rows: Array, first_rows: Array | None = None) -> None:
        self.parts = parts
        self.rows = rows
        # Entries of manifests that are decoded as a whole, by the identity of the part; None until then.
        self._whole: dict[int, list[ManifestEntry] | None] = {}
        self._first_rows = np.cumsum([0, *map(len, parts)]) if first_rows is None else first_rows

    @classmethod
    def live(
        cls,
        manifests: Iterable[ManifestColumns],
        keep: Callable[[bytes], bool] | None = None,
        *,
        is_whole: Callable[[ManifestEntry], bool] | None = None,
    ) -> FileColumns:
        """Return the ADD entries that no DELETE entry cancels.

        Only entries whose name, by its hash, occurs twice are compared, and few of them decoded.

        Args:
            manifests: in the order of the manifest lists.
            keep: a test for serialized partitions; None for all.
            is_whole: as of ``merge_entries``.

        Raises:
            FormatError: a file is added twice.
        """
        parts = tuple(manifests)
        is_added = ~_concatenate([part.is_delete for part in parts], bool)
        rows = np.arange(len(is_added))
        if keep is not None:
            first_rows = np.cumsum([0, *map(len, parts)]).tolist()
            chosen = [part.of_partitions(keep) + first for part, first in zip(parts, first_rows, strict=False)]
            rows = _concatenate(chosen, np.int64)
        files = cls(parts, rows)
        hashes = files.column("name_hash")
        ascending = np.sort(hashes)
        repeated = ascending[1:][ascending[1:] == ascending[:-1]]
        if not len(repeated):
            return cls(parts, rows if is_added.all() else rows[is_added[rows]])
        is_suspect = np.isin(hashes, repeated)
        suspects = files.where(is_suspect)
        suspects = suspects.where(~suspects._are_cancelled(hashes[is_suspect]))  # noqa: SLF001 - of this class
        # One entry may be in several manifests: it survives once, where it was added last.
        entries = suspects.entries()
        row_of = {id(entry): row for entry, row in zip(entries, suspects.rows.tolist(), strict=True)}
        survivors = [row_of[id(entry)] for entry in merge_entries(entries, is_whole).values()]
        is_live = np.zeros(len(is_added), bool)
        is_live[rows[~is_suspect]] = True
        is_live[survivors] = True
        return cls(parts, np.flatnonzero(is_live & is_added))

    def _are_cancelled(self, hashes: Array) -> Array:
        """Whether an entry is the only ADD or the only DELETE of its file, and the DELETE follows.

        False for files with other parts of an identity than those that are compared here.

        Args:
            hashes: of the names.
        """
        order = np.argsort(hashes, kind="stable")
        _, starts, counts = np.unique(hashes[order], return_index=True, return_counts=True)
        first, second = order[starts[counts == 2]], order[starts[counts == 2] + 1]
        is_delete, names, (_, partitions) = self.column("is_delete"), self.names(), self.partitions()
        is_other = self.column("may_have_index") | self.column("is_external")
        cancelled = ~is_delete[first] & is_delete[second] & ~is_other[first] & ~is_other[second]
        for column in (names, partitions, self.column("bucket"), self.column("level")):
            cancelled &= column[first] == column[second]
        result = np.zeros(len(hashes), bool)
        result[first[cancelled]] = True
        result[second[cancelled]] = True
        return result

    def names(self) -> Array:
        """Return the names of the files, as bytes."""
        return _concatenate([part.names(rows) for part, rows in self.by_part()], "S1")

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.rows)

    def column(self, name: str) -> Array:
        """Return a column of ``ManifestColumns``, with one value per file."""
        if self._is_whole:
            return _concatenate([getattr(part, name) for part in self.parts], np.int64)
        return _concatenate([getattr(part, name)[rows] for part, rows in self.by_part()], np.int64)

    def total(self, name: str) -> int:
        """Return the sum of a column."""
        return total(self.column(name))

    def min_sequence_numbers(self) -> Array:
        """Return the smallest sequence number of each file; it is not a column, because few readers need it."""
        found = [np.zeros(0, np.int64)]
        for part, rows in self.by_part():
            numbers = [group.columns["min_sequence_number"] for group in part.details(rows)]
            found += numbers or [np.array([entry.file.min_sequence_number for entry in part.entries(rows)], np.int64)]
        return np.concatenate(found)

    def partitions(self) -> tuple[tuple[bytes, ...], Array]:
        """Return the distinct serialized partitions, in order of first occurrence, and for each file its index."""
        known: dict[bytes, int] = {}
        codes = []
        for part, rows in self.by_part():
            numbers = np.array([known.setdefault(each, len(known)) for each in part.partitions], np.int32)
            codes.append(numbers[part.partition if self._is_whole else part.partition[rows]])
        of_files = _concatenate(codes, np.int32)
        if self._is_whole:
            return tuple(known), of_files
        # The last value that is assigned remains, so that of the first file is assigned last.
        first = np.full(len(known), len(of_files))
        first[of_files[::-1]] = np.arange(len(of_files))[::-1]
        order = np.argsort(first, kind="stable")
        order = order[first[order] < len(of_files)]
        renumbered = np.zeros(len(known), np.int32)
        renumbered[order] = np.arange(len(order))
        names = list(known)
        return tuple(names[code] for code in order.tolist()), renumbered[of_files]

    @property
    def _is_whole(self) -> bool:
        """Whether all entries of the manifests are among them."""
        return len(self.rows) == int(self._first_rows[-1])

    def where(self, chosen: Array) -> FileColumns:
        """Return some of the files; ``chosen`` has one value per file."""
        return self if chosen.all() else FileColumns(self.parts, self.rows[chosen], self._first_rows)

    def divided(self, places: Iterable[Array], *, are_all_used: bool) -> Iterator[FileColumns]:
        """Yield the files at each of some places, which ascend.

        Args:
            are_all_used: whether most of them will be decoded: then manifests are decoded as a whole, if most of their
                entries are among the files.
        """
        whole: dict[int, list[ManifestEntry] | None] = {}
        if are_all_used:
            whole = {id(part): None for part, rows in self.by_part() if 2 * len(rows) >= len(part)}
        for each in places:
            files = FileColumns(self.parts, self.rows[each], self._first_rows)
            files._whole = whole
            yield files

    def by_part(self) -> Iterator[tuple[ManifestColumns, Array]]:
        """Yield each manifest that has some of the files, and the numbers of their entries in it."""
        if not len(self.rows):
            return
        firsts = self._first_rows
        begin, end = np.searchsorted(firsts, [self.rows[0], self.rows[-1]], "right").tolist()
        bounds = np.searchsorted(self.rows, firsts[begin - 1 : end + 1]).tolist()
        for number, (low, high) in enumerate(pairwise(bounds), begin - 1):
            if high > low:
                yield self.parts[number], self.rows[low:high] - firsts[number]

    def __iter__(self) -> Iterator[ManifestEntry]:
        """Yield the files, in order; they are decoded manifest by manifest."""
        for part, rows in self.by_part():
            yield from self._entries_of(part, rows)

    def entries(self) -> list[ManifestEntry]:
        """Decode the files, in order."""
        return list(self)

    def _entries_of(self, part: ManifestColumns, rows: Array) -> Iterable[ManifestEntry]:
        if id(part) not in self._whole:
            return part.entries(rows)
        entries = self._whole[id(part)]
        if entries is None:
            entries = self._whole[id(part)] = part.entries()
        return [entries[row] for row in rows.tolist()]


class LazyEntries(Sequence[ManifestEntry]):
    """Entries that are decoded when they are first used, and kept.

    Args:
        files: the entries.
    """

    __slots__ = ("_columns", "_entries", "files")

    def __init__(self, files: FileColumns) -> None:
        self.files = files
        self._entries: tuple[ManifestEntry, ...] | None = None
        # Columns of all buckets, kept if there are several buckets: otherwise each of them would read the columns.
        self._columns: dict[str, Array] | None = None

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

    def by_bucket(self, *, in_order: bool = True) -> Iterator[tuple[int, int, LazyFiles]]:
        """Yield each bucket, its number of buckets, and its files; all are of one partition.

        Args:
            in_order: whether the files are in write order, for which their sequence numbers have to be read.
        """
        buckets, totals = self.files.column("bucket"), self.files.column("total_buckets")
        keys = (self.files.min_sequence_numbers(), buckets) if in_order else (buckets,)
        order = np.lexsort(keys)
        ends = np.flatnonzero(np.diff(buckets[order])) + 1
        self._columns = {} if len(ends) else None
        for start, end in pairwise([0, *ends.tolist(), len(order)]):
            places = order[start:end]
            yield int(buckets[places[0]]), int(totals[places.min()]), LazyFiles(self, places)

    def by_layout(self) -> Iterator[tuple[ManifestColumns, Array]]:
        """Yield each manifest with some of the files, and the numbers of those with one layout of statistics in it."""
        for part, rows in self.files.by_part():
            layouts = part.layout[rows]
            for layout in np.unique(layouts).tolist():
                yield part, rows[layouts == layout]

    def column(self, name: str) -> Array:
        """Return a column of ``ManifestColumns``, or ``name``, with one value per file."""
        found = (self._columns or {}).get(name)
        if found is None:
            found = self.files.names() if name == "name" else self.files.column(name)
            if self._columns is not None:
                self._columns[name] = found
        return found

    def _decoded(self) -> tuple[ManifestEntry, ...]:
        if self._entries is None:
            self._entries = tuple(self.files.entries())
        return self._entries


class LazyFiles(Sequence[DataFileMeta]):
    """Files that are decoded when they are first used as objects, and kept; it is equal to their tuple.

    Args:
        entries: of a partition.
        places: of the files among them, in the order of the files.
    """

    __slots__ = ("_files", "_places", "entries")

    def __init__(self, entries: LazyEntries, places: Array) -> None:
        self.entries = entries
        self._places = places
        self._files: tuple[DataFileMeta, ...] | None = None

    def __len__(self) -> int:
        """Return their number, without decoding them."""
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> DataFileMeta: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DataFileMeta]: ...
    def __getitem__(self, index: int | slice) -> DataFileMeta | Sequence[DataFileMeta]:
        """Return one or some of them."""
        return self._decoded()[index]

    def __iter__(self) -> Iterator[DataFileMeta]:
        """Iterate over them."""
        return iter(self._decoded())

    def __eq__(self, other: object) -> bool:
        """Whether the files are equal."""
        return isinstance(other, Sequence) and self._decoded() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the files."""
        return hash(self._decoded())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the files themselves."""
        return tuple, (self._decoded(),)

    def column(self, name: str) -> Array:
        """Return a column of ``LazyEntries``, with one value per file."""
        column: Array = self.entries.column(name)[self._places]
        return column

    def total(self, name: str) -> int:
        """Return the sum of a column."""
        return total(self.column(name))

    def names(self) -> list[str]:
        """Return the names, without decoding the files."""
        names = self.column("name").tolist()
        return b"\n".join(names).decode().split("\n")

    def _decoded(self) -> tuple[DataFileMeta, ...]:
        if self._files is None:
            entries = self.entries[:]
            self._files = tuple(entries[place].file for place in self._places.tolist())
        return self._files


def total_of(entries: Sequence[ManifestEntry], field: str) -> int:
    """Return the sum of a field of ``DataFileMeta``, without decoding entries in columns."""
    if isinstance(entries, LazyEntries):
        return entries.files.total(field)
    return sum(getattr(entry.file, field) for entry in entries)


def by_code(files: FileColumns, codes: Array, *, are_all_used: bool) -> Iterator[tuple[int, FileColumns]]:
    """Yield each code and its files, in the order of the codes.

    Args:
        codes: as ``FileColumns.partitions`` returns them.
        are_all_used: as of ``FileColumns.divided``.
    """
    order, starts = sorted_codes(codes)
    bounds = [*starts.tolist(), len(order)]
    divided = files.divided((order[start:end] for start, end in pairwise(bounds)), are_all_used=are_all_used)
    yield from zip(codes[order[starts]].tolist(), divided, strict=True)


def sorted_codes(codes: Array) -> tuple[Array, Array]:
    """Return the order that sorts the codes, and where in it each distinct code starts."""
    # Numbers of 16 bits are sorted in a fifth of the time.
    is_small = int(codes.max(initial=0)) < 1 << 16
    order = np.argsort(codes.astype(np.uint16) if is_small else codes, kind="stable")
    ascending = codes[order]
    return order, np.flatnonzero(np.concatenate([ascending[:1] >= 0, ascending[1:] != ascending[:-1]]))


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
    if width == 1:
        return count_values(first)
    if width > _MAX_BUCKETS:
        return len(set(zip(first.tolist(), second.tolist(), strict=True)))
    pairs = first.astype(np.int64) * width + (second - lowest)
    return count_values(pairs) if int(pairs.max()) <= max(4 * len(pairs), _MAX_BUCKETS) else len(set(pairs.tolist()))


def count_values(codes: Array) -> int:
    """Return the number of distinct values; they are small numbers, from 0."""
    is_used = np.zeros(int(codes.max(initial=-1)) + 1, bool)
    is_used[codes] = True
    return int(np.count_nonzero(is_used))


def _concatenate(arrays: Sequence[Array], dtype: Any) -> Array:  # noqa: ANN401 - a type of numpy
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)

"""Pruning of files by their indexes, in the manifest entry of a file or in a separate file.

Of a separate file, first the headers are read, then only the indexes of the required columns.

Source:
    Paimon ``core:operation/AppendOnlyFileStoreScan.java`` (``testFileIndex``), ``core:io/FileIndexEvaluator.java``;
    design/0059, design/0071.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import TableStoreError, UnsupportedFeatureError
from penstock.format.file_index import (
    BITMAP,
    BLOOM_FILTER,
    RANGE_BITMAP,
    WRITTEN,
    decode_index_places,
    is_indexed_type,
    may_hold,
    part_of,
)
from penstock.format.layout import FILE_INDEX_SUFFIX, index_file_paths
from penstock.options import ReadOptions
from penstock.predicate.evaluate import allowed_values
from penstock.printable import open_log
from penstock.table.bulk_files import map_parallel
from penstock.table.metadata_cache import read_index_part
from penstock.table.read.prune import is_same_but_nulls
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, FileKey, ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType
    from penstock.predicate.tree import BoundPredicate
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
# Holds the positions of the indexes of a hundred columns, or a whole small index.
_HEAD_BYTES: Final = 8_192
# 600 KB is the Bloom filter of a million values; a bitmap of 1 MB is read value by value in tens of milliseconds.
_MAX_INDEX_BYTES: Final = {BLOOM_FILTER: 8_388_608, BITMAP: 1_048_576, RANGE_BITMAP: 1_048_576}
# So at most 128 MB are in memory at once.
_READ_AT_ONCE: Final = 16


class Question(NamedTuple):
    """The values of a column that a filter allows.

    Attributes:
        column: name in the file.
        data_type: of the column in the file.
        values: internal values, None for null.
    """

    column: str
    data_type: DataType
    values: frozenset[object]

    def may_hold(self, kind: str, index: bytes) -> bool:
        """Whether, according to an index of this kind, the file may have a row with one of the values."""
        return may_hold({kind: index}, self.data_type, self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """An index file and the questions to evaluate with it.

    Attributes:
        path: of the index file.
        data_bytes: size of the data file.
        questions: about columns; the file is kept unless the answer to one of them is no.
    """

    path: str
    data_bytes: int
    questions: tuple[Question, ...]


@dataclass(slots=True)
class IndexBudget:
    """The permitted and the actual cost of reading index files.

    Attributes:
        left: bytes that may still be read.
        files: number of index files that were read, at least in part.
        bytes: number of bytes read from them, including cached ones.
    """

    left: int
    files: int = 0
    bytes: int = 0

    def take(self, size: int) -> bool:
        """Count bytes that are about to be read; False if there are too many."""
        if size > self.left:
            return False
        self.left -= size
        return True


class _Part(NamedTuple):
    """An index to read."""

    question: Question
    kind: str
    start: int
    length: int


class IndexFiles:
    """Evaluates index files; a file that is missing, damaged or too expensive to read never excludes its data file."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._threads = min(_READ_AT_ONCE, ref.file_io.parallel_calls)
        self._has_warned = False

    def ask(self, files: Sequence[IndexFile], budget: IndexBudget) -> list[bool]:
        """Return for each file whether its data file may have a row that passes the filter.

        On object stores this takes two sequential requests per 16 files, whatever the size of the indexes.
        """
        asked = [file for file in files if budget.take(_HEAD_BYTES)]
        budget.files += len(asked)
        read = map_parallel(lambda each: self._read(each.path, 0, _HEAD_BYTES), asked, threads=self._threads)
        heads = [head or b"" for head in read]
        budget.bytes += sum(map(len, heads))
        answers: dict[str, bool] = {}
        unread: dict[str, list[_Part]] = {}
        for file, head in zip(asked, heads, strict=True):
            known = [(part, part_of(head, part.start, part.length)) for part in _parts(file, head)]
            if any(data is not None and not part.question.may_hold(part.kind, data) for part, data in known):
                answers[file.path] = False
                continue
            left = [part for part, data in known if data is None]
            if left and budget.take(sum(part.length for part in left)):
                unread[file.path] = left
                budget.bytes += sum(part.length for part in left)
        calls = list(unread.items())
        answers |= dict(zip(unread, map_parallel(self._may_hold, calls, threads=self._threads), strict=True))
        return [answers.get(file.path, True) for file in files]

    def _may_hold(self, call: tuple[str, Sequence[_Part]]) -> bool:
        path, parts = call
        for part in parts:
            data = self._read(path, part.start, part.length)
            # With a truncated Bloom filter, the wrong bits would be tested.
            if data is not None and len(data) == part.length and not part.question.may_hold(part.kind, data):
                return False
        return True

    def _read(self, path: str, start: int, length: int) -> bytes | None:
        try:
            return read_index_part(self._ref.file_io, path, start, length)
        except (TableStoreError, OSError) as error:
            if not self._has_warned:
                self._has_warned = True
                _LOG.warning("table %s: an index file cannot be read, so its data file is: %s", self._ref.name, error)
            return None


def _parts(file: IndexFile, head: bytes) -> list[_Part]:
    """Return the usable indexes that are worth reading."""
    places = decode_index_places(head)
    found = []
    for question in file.questions:
        for kind, most in _MAX_INDEX_BYTES.items():
            place = places.get(question.column, {}).get(kind)
            if place is not None and place.length <= min(most, file.data_bytes):
                found.append(_Part(question, kind, *place))
    return found


# About 20 MB of keys; a stream checks the same files when it ends a micro-batch and when it plans its tasks.
_MAX_ANSWERS: Final = 65_536


class FileIndexPruner:
    """Prunes files that, according to an index, contain none of the values that a filter allows in a column.

    Use one pruner per filter.

    Args:
        load_schema: loads a schema by id.
    """

    def __init__(self, ref: TableRef, load_schema: Callable[[int], TableSchema]) -> None:
        self._load_schema = load_schema
        options = ref.parsed(ReadOptions)
        self._is_enabled = options.file_index_enabled
        self._max_bytes = options.file_index_max_bytes
        self._locator = FileLocator.of(ref)
        self._index_files = IndexFiles(ref)
        self._answers: dict[FileKey, bool] = {}
        self._latest = _indexed_columns(ref.options)
        self._indexed: dict[int, frozenset[str]] = {}

    def new_budget(self) -> IndexBudget:
        """Return the budget for index files of one plan."""
        return IndexBudget(left=self._max_bytes)

    def kept(self, files: Iterable[tuple[ManifestEntry, BoundPredicate]], budget: IndexBudget) -> list[bool]:
        """Return for each file whether it may contain a row that passes its filter.

        Args:
            files: with filters bound to the read schema, without partition columns.
        """
        kept: list[bool] = []
        asked: dict[int, tuple[FileKey, IndexFile]] = {}
        for place, (entry, predicate) in enumerate(files):
            key = entry.key
            questions = self._questions(entry.file, predicate) if has_index(entry.file) and self._is_enabled else ()
            if questions and entry.file.embedded_file_index is not None:
                kept.append(_may_hold(entry.file.embedded_file_index, questions))
                continue
            kept.append(self._answers.get(key, True))
            may_ask = key not in self._answers and self._is_indexed(entry.file.schema_id, questions)
            path = self._path(entry) if may_ask else None
            if path is not None:
                asked[place] = key, IndexFile(path=path, data_bytes=entry.file.file_size, questions=questions)
        if asked:
            answers = self._index_files.ask([file for _, file in asked.values()], budget)
            for (place, (key, _)), answer in zip(asked.items(), answers, strict=True):
                kept[place] = self._answers[key] = answer
            if len(self._answers) > _MAX_ANSWERS:
                self._answers.clear()
        return kept

    def _questions(self, file: DataFileMeta, predicate: BoundPredicate) -> tuple[Question, ...]:
        found = []
        for field in predicate.fields:
            values = allowed_values(predicate.root, field.name)
            stored = None if values is None else self._stored(file.schema_id, field)
            if values is not None and stored is not None and is_indexed_type(stored.type):
                found.append(Question(stored.name, stored.type, values))
        return tuple(found)

    def _is_indexed(self, schema_id: int, questions: Sequence[Question]) -> bool:
        """Whether options declare a column as indexed, so that the header of the file's index is worth reading.

        The current options count as well: Paimon's ``rewrite_file_index`` adds indexes to files with an older schema.
        """
        if not questions:
            return False
        columns = self._indexed.get(schema_id)
        if columns is None:
            of_file = _indexed_columns(self._load_schema(schema_id).option_map)
            columns = self._indexed[schema_id] = of_file | self._latest
        return any(question.column in columns for question in questions)

    def _stored(self, schema_id: int, field: DataField) -> DataField | None:
        """Return a column as stored in the file; None if the file has none of the same type."""
        for stored in self._load_schema(schema_id).fields:
            if stored.id == field.id:
                return stored if is_same_but_nulls(stored.type, field.type) else None
        return None

    def _path(self, entry: ManifestEntry) -> str | None:
        """Return the path of the index file of a data file; None if there is none, or it may not be read."""
        try:
            path = self._locator.path(entry.partition, entry.bucket, entry.file)
        except UnsupportedFeatureError:
            return None  # the read of the data file reports this
        paths = index_file_paths(path, entry.file)
        return paths[0] if len(paths) == 1 else None


def _indexed_columns(options: Mapping[str, str]) -> frozenset[str]:
    texts = (options.get(f"file-index.{kind}.columns", "") for kind in WRITTEN)
    return frozenset(name.strip() for text in texts for name in text.split(","))


def has_index(file: DataFileMeta) -> bool:
    """Whether a file has an index of any kind, in its manifest entry or in a separate file."""
    return file.embedded_file_index is not None or any(name.endswith(FILE_INDEX_SUFFIX) for name in file.extra_files)


def _may_hold(data: bytes, questions: Sequence[Question]) -> bool:
    places = decode_index_places(data)
    for question in questions:
        for kind, place in places.get(question.column, {}).items():
            index = part_of(data, *place)
            if index is not None and not question.may_hold(kind, index):
                return False
    return True

"""Reading of index files next to data files: first the headers, then only the indexes of the required columns.

Source:
    Paimon ``core:io/FileIndexEvaluator.java``, ``common:fileindex/FileIndexPredicate.java``; design/0071.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import TableStoreError
from penstock.format.file_index import BITMAP, BLOOM_FILTER, decode_index_places, may_hold, part_of
from penstock.printable import open_log
from penstock.table.bulk_files import map_parallel
from penstock.table.metadata_cache import read_index_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.types.data_types import DataType
    from penstock.table.ref import TableRef

INDEX_SUFFIX: Final = ".index"

_LOG: Final = open_log(__name__)
# Holds the positions of the indexes of a hundred columns, or a whole small index.
_HEAD_BYTES: Final = 8_192
# 600 KB is the Bloom filter of a million values; a bitmap of 1 MB is read value by value in tens of milliseconds.
_MAX_INDEX_BYTES: Final = {BLOOM_FILTER: 8_388_608, BITMAP: 1_048_576}
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

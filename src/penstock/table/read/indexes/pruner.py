"""Pruning of files by the indexes that other engines write, in the manifest entry of a file or in a separate file.

Source:
    Paimon ``core:operation/AppendOnlyFileStoreScan.java`` (``testFileIndex``), ``core:io/FileIndexEvaluator.java``;
    design/0059, design/0071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.format.file_index import BITMAP, BLOOM_FILTER, decode_index_places, is_indexed_type, part_of
from penstock.format.layout import extra_file_paths
from penstock.options import ReadOptions
from penstock.predicate.evaluate import allowed_values
from penstock.table.locate import FileLocator
from penstock.table.read.column_stats import is_same_but_nulls
from penstock.table.read.indexes.files import INDEX_SUFFIX, IndexBudget, IndexFile, IndexFiles, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import BoundPredicate
    from penstock.table.ref import TableRef

# About 10 MB of names; a stream checks the same files when it ends a micro-batch and when it plans its tasks.
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
        self._answers: dict[str, bool] = {}
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
        asked: dict[int, tuple[str, IndexFile]] = {}
        for place, (entry, predicate) in enumerate(files):
            name = entry.file.file_name
            questions = self._questions(entry.file, predicate) if has_index(entry.file) and self._is_enabled else ()
            if questions and entry.file.embedded_file_index is not None:
                kept.append(_may_hold(entry.file.embedded_file_index, questions))
                continue
            kept.append(self._answers.get(name, True))
            may_ask = name not in self._answers and self._is_indexed(entry.file.schema_id, questions)
            path = self._path(entry) if may_ask else None
            if path is not None:
                asked[place] = name, IndexFile(path=path, data_bytes=entry.file.file_size, questions=questions)
        if asked:
            answers = self._index_files.ask([file for _, file in asked.values()], budget)
            for (place, (name, _)), answer in zip(asked.items(), answers, strict=True):
                kept[place] = self._answers[name] = answer
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
        paths = [each for each in extra_file_paths(path, entry.file) if each.endswith(INDEX_SUFFIX)]
        return paths[0] if len(paths) == 1 else None


def _indexed_columns(options: Mapping[str, str]) -> frozenset[str]:
    texts = (options.get(f"file-index.{kind}.columns", "") for kind in (BITMAP, BLOOM_FILTER))
    return frozenset(name.strip() for text in texts for name in text.split(","))


def has_index(file: DataFileMeta) -> bool:
    """Whether a file has an index of any kind, in its manifest entry or in a separate file."""
    return file.embedded_file_index is not None or any(name.endswith(INDEX_SUFFIX) for name in file.extra_files)


def _may_hold(data: bytes, questions: Sequence[Question]) -> bool:
    places = decode_index_places(data)
    for question in questions:
        for kind, place in places.get(question.column, {}).items():
            index = part_of(data, *place)
            if index is not None and not question.may_hold(kind, index):
                return False
    return True

"""Column statistics of a data file's manifest entry, mapped to the read schema.

Source:
    Paimon ``core:stats/SimpleStatsEvolution.java``; docs/spec/format.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError
from penstock.format.manifest.stats import ColumnStats, decode_stats
from penstock.format.row.row import row_decoder
from penstock.format.types.data_types import AtomicType, TypeRoot, with_nullability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType

_INTEGERS: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Positions of the columns' statistics in the manifest entries of files of one kind.

    Attributes:
        arity: number of columns that the entries cover.
        decode: decodes the bytes of a minimum or maximum row to the values of ``columns``.
        columns: name in the read schema, position in the row, and whether minimum and maximum can be trusted.
        lacking: columns that the files do not have, so that all their values are null.
    """

    arity: int
    decode: Callable[[bytes], tuple[object, ...]]
    columns: tuple[tuple[str, int, bool], ...]
    lacking: tuple[str, ...]


class ColumnStatsReader:
    """Reads the statistics of some columns from manifest entries, for files of any schema of the table.

    Args:
        load_schema: loads a schema by id.
        fields: the columns, as in the read schema.
    """

    def __init__(self, load_schema: Callable[[int], TableSchema], fields: Sequence[DataField]) -> None:
        self._load_schema = load_schema
        self._fields = fields
        self._plans: dict[tuple[object, ...], _Plan] = {}

    def read(self, file: DataFileMeta) -> Mapping[str, ColumnStats]:
        """Return the known statistics by column name; columns without known statistics are left out.

        Statistics are only used to skip files, so invalid ones are treated as unknown.
        """
        is_orc = file.file_name.endswith(".orc")
        key = (file.schema_id, file.value_stats_cols, file.write_cols, is_orc)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(file, is_orc=is_orc)
        found = {name: ColumnStats(null_count=file.row_count) for name in plan.lacking}
        stats = file.value_stats
        if not plan.columns or len(stats.null_counts) != plan.arity:
            return found
        try:
            low, high = plan.decode(stats.min_values), plan.decode(stats.max_values)
        except FormatError:
            return found
        for (name, place, is_trusted), least, greatest in zip(plan.columns, low, high, strict=True):
            nulls = stats.null_counts[place]
            found[name] = (
                ColumnStats(min=least, max=greatest, null_count=nulls) if is_trusted else ColumnStats(null_count=nulls)
            )
        return found

    def _plan(self, file: DataFileMeta, *, is_orc: bool) -> _Plan:
        file_fields = self._load_schema(file.schema_id).fields
        held = [field for field in file_fields if file.write_cols is None or field.name in file.write_cols]
        by_name = {field.name: field for field in held}
        by_id = {field.id: field for field in held}
        covered = tuple(by_name) if file.value_stats_cols is None else file.value_stats_cols
        columns = []
        for field in self._fields:
            stored = by_id.get(field.id)
            if stored is not None and stored.name in covered and is_comparable(stored.type, field.type):
                # ORC's timestamp statistics are whole milliseconds in the writer's zone.
                is_trusted = not (is_orc and isinstance(field.type, AtomicType) and field.type.root in _TIMESTAMPS)
                columns.append((field.name, covered.index(stored.name), is_trusted))
        known = all(name in by_name for name in covered)
        types = tuple(by_name[name].type for name in covered) if known else ()
        return _Plan(
            arity=len(covered),
            decode=row_decoder(types, [place for _, place, _ in columns] if known else []),
            columns=tuple(columns) if known else (),
            lacking=tuple(field.name for field in self._fields if field.id not in by_id),
        )


def decode_file_stats(file: DataFileMeta, file_fields: Sequence[DataField]) -> Mapping[str, ColumnStats]:
    """Decode the statistics of an entry, by column name of the file's schema; empty if they are invalid."""
    covered = file_fields
    if file.value_stats_cols is None and file.write_cols is not None:
        covered = [field for field in file_fields if field.name in file.write_cols]
    try:
        return decode_stats(file.value_stats, file.value_stats_cols, covered)
    except FormatError:
        return {}  # statistics are only used to skip files: a file without valid ones is read


def is_comparable(stored: DataType, wanted: DataType) -> bool:
    """Whether statistics of one type are valid for values cast to the other: equal types, or a lossless cast."""
    if is_same_but_nulls(stored, wanted):
        return True
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    if stored.root in _INTEGERS and wanted.root in _INTEGERS:
        return _INTEGERS.index(stored.root) <= _INTEGERS.index(wanted.root)
    is_text = stored.root is TypeRoot.VARCHAR and wanted.root is TypeRoot.VARCHAR
    return is_text and (stored.length or 1) <= (wanted.length or 1)


def is_same_but_nulls(left: DataType, right: DataType) -> bool:
    """Whether two types are equal except for nullability."""
    return with_nullability(left, nullable=True) == with_nullability(right, nullable=True)

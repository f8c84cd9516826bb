"""Readers of other projects, and their known defects, for which they are not compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from tests.support.differential.case import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from tests.support.differential.case import FuzzColumn, FuzzLeaf
    from tests.support.differential.model import FuzzTable


# Largest time since 1970 whose nanoseconds fit 64 bits.
_FARTHEST_MICROS: Final = 2**63 // 1000
_DAY_MICROS: Final = 86_400 * 10**6
_GREGORIAN_DAY: Final = -141_427


class OtherReader(Protocol):
    """An engine that reads a table by its path."""

    @property
    def name(self) -> str:
        """Name of the engine, in exclusions and findings."""
        ...

    def read(
        self, location: str, schema: pa.Schema, condition: tuple[FuzzColumn, FuzzLeaf] | None, options: dict[str, str]
    ) -> pa.Table | None:
        """Return rows; None if the engine does not support the condition.

        Args:
            schema: schema of the returned rows.
            condition: filter, by which the engine also skips files; None for all rows.
            options: of the read, which name a past state or changes; none for the latest snapshot.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A known defect of an engine, for which its reads are skipped.

    Attributes:
        reader: name of the engine.
        applies: whether the defect affects a table, a condition and options of a read.
    """

    reader: str
    reason: str
    applies: Callable[[FuzzTable, FuzzLeaf | None, dict[str, str]], bool]


def _has_far_timestamps(table: FuzzTable, _leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    return "orc" in table.formats and any(abs(micros) > _FARTHEST_MICROS for micros in table.values("TIMESTAMP"))


def _has_back_quotes_in_orc(table: FuzzTable, _leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    return "orc" in table.formats and any("`" in column.name for column in (*table.columns, *table.past))


def _asks_parquet_for_a_dot(table: FuzzTable, leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    if leaf is None or "parquet" not in table.formats:
        return False
    return any("." in column.name for column in (*table.columns, *table.past) if column.key == leaf.column)


def _asks_orc_before_1582(table: FuzzTable, leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    if leaf is None or "orc" not in table.formats or leaf.operator not in COMPARISONS:
        return False
    first = {"DATE": _GREGORIAN_DAY, "TIMESTAMP": _GREGORIAN_DAY * _DAY_MICROS}
    sql = table.column(leaf.column).sql
    return any(sql.startswith(kind) and any(value < least for value in leaf.values) for kind, least in first.items())


def _compares_bytes(table: FuzzTable, leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    return leaf is not None and table.column(leaf.column).sql == "BYTES" and leaf.operator in {"<", "<=", ">", ">="}


def _has_partitions_of_bytes_or_floats(table: FuzzTable, _leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    kinds = ("BYTES", "VARBINARY", "FLOAT", "DOUBLE")
    return any(column.sql.startswith(kinds) for column in table.columns if column.name in table.partition_by)


def _has_partition_columns_alone(table: FuzzTable, _leaf: FuzzLeaf | None, _options: dict[str, str]) -> bool:
    return "avro" in table.formats and all(column.name in table.partition_by for column in table.columns)


def _asks_for_changes(_table: FuzzTable, _leaf: FuzzLeaf | None, options: dict[str, str]) -> bool:
    return "incremental-between" in options


def _compares_files_with_other_indexes(table: FuzzTable, _leaf: FuzzLeaf | None, options: dict[str, str]) -> bool:
    return table.is_indexed and options.get("incremental-between", "").startswith("tag")


EXCLUSIONS: Final = (
    Exclusion(
        reader="pypaimon",
        reason="2.1.0 takes timestamps of ORC for int64 nanoseconds, which wrap: 1582-10-15 comes as 2167-05-04",
        applies=_has_far_timestamps,
    ),
    Exclusion(
        reader="pypaimon",
        reason="2.1.0 finds no partitions of bytes and floats, for which it has Python's names, as p=inf",
        applies=_has_partitions_of_bytes_or_floats,
    ),
    Exclusion(
        reader="pypaimon",
        reason="2.1.0 returns no rows of Avro if all columns are partition columns, of its own files neither",
        applies=_has_partition_columns_alone,
    ),
    Exclusion(
        reader="pypaimon",
        reason="2.1.0 ignores incremental-between, and returns all rows",
        applies=_asks_for_changes,
    ),
    Exclusion(
        reader="java",
        reason="1.4.2 takes a file that got another index for a new one, and returns its rows as changes between tags",
        applies=_compares_files_with_other_indexes,
    ),
    Exclusion(
        reader="java",
        reason="1.4.2 finds no column of ORC whose name has a backquote, of its own files neither: a`b comes as null",
        applies=_has_back_quotes_in_orc,
    ),
    Exclusion(
        reader="java",
        reason="1.4.2 filters no Parquet column whose name has a dot, of its own files neither: a.b > 1 finds no 2",
        applies=_asks_parquet_for_a_dot,
    ),
    Exclusion(
        reader="java",
        reason="1.4.2 finds nothing by days before 1582-10-15 in ORC, in its own files neither: = 1582-10-09",
        applies=_asks_orc_before_1582,
    ),
    Exclusion(
        reader="java",
        reason="1.4.2 takes bytes for signed where it filters rows: X'fffe' < X'00'",
        applies=_compares_bytes,
    ),
)
"""Defects that were found in these versions, each with its smallest example."""


def exclusion_of(reader: str, table: FuzzTable, leaf: FuzzLeaf | None, options: dict[str, str]) -> Exclusion | None:
    """Return the exclusion for which a read is skipped; None if there is none."""
    return next((each for each in EXCLUSIONS if each.reader == reader and each.applies(table, leaf, options)), None)

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

    def read(self, location: str, schema: pa.Schema, condition: tuple[FuzzColumn, FuzzLeaf] | None) -> pa.Table | None:
        """Return the rows of the latest snapshot; None if the engine does not support the condition.

        Args:
            schema: schema of the returned rows.
            condition: filter, by which the engine also skips files; None for all rows.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A known defect of an engine, for which its reads are skipped.

    Attributes:
        reader: name of the engine.
        applies: whether the defect affects a table and a condition.
    """

    reader: str
    reason: str
    applies: Callable[[FuzzTable, FuzzLeaf | None], bool]


def _has_far_timestamps(table: FuzzTable, _leaf: FuzzLeaf | None) -> bool:
    return "orc" in table.formats and any(abs(micros) > _FARTHEST_MICROS for micros in table.values("TIMESTAMP"))


def _has_back_quotes_in_orc(table: FuzzTable, _leaf: FuzzLeaf | None) -> bool:
    return "orc" in table.formats and any("`" in column.name for column in (*table.columns, *table.past))


def _asks_parquet_for_a_dot(table: FuzzTable, leaf: FuzzLeaf | None) -> bool:
    if leaf is None or "parquet" not in table.formats:
        return False
    return any("." in column.name for column in (*table.columns, *table.past) if column.key == leaf.column)


def _asks_orc_before_1582(table: FuzzTable, leaf: FuzzLeaf | None) -> bool:
    if leaf is None or "orc" not in table.formats or leaf.operator not in COMPARISONS:
        return False
    first = {"DATE": _GREGORIAN_DAY, "TIMESTAMP": _GREGORIAN_DAY * _DAY_MICROS}
    sql = table.column(leaf.column).sql
    return any(sql.startswith(kind) and any(value < least for value in leaf.values) for kind, least in first.items())


def _compares_bytes(table: FuzzTable, leaf: FuzzLeaf | None) -> bool:
    return leaf is not None and table.column(leaf.column).sql == "BYTES" and leaf.operator in {"<", ">"}


EXCLUSIONS: Final = (
    Exclusion(
        reader="pypaimon",
        reason="2.1.0 takes timestamps of ORC for int64 nanoseconds, which wrap: 1582-10-15 comes as 2167-05-04",
        applies=_has_far_timestamps,
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


def exclusion_of(reader: str, table: FuzzTable, leaf: FuzzLeaf | None) -> Exclusion | None:
    """Return the exclusion for which a read is skipped; None if there is none."""
    return next((each for each in EXCLUSIONS if each.reader == reader and each.applies(table, leaf)), None)

"""The reference engines as readers of the differential fuzzer."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
from tests.interop.canonical import format_timestamp, table_of
from tests.interop.engines import Engine
from tests.support.differential.case import FuzzColumn, FuzzLeaf

_LARGEST: Final = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
_EPOCH: Final = date(1970, 1, 1)


class EngineReader:
    """An engine's process, asked for one table after the other.

    Args:
        types: of columns that it is given filters on, without their lengths.
    """

    def __init__(self, name: str, engine: Engine, types: frozenset[str]) -> None:
        self.name = name
        self._engine = engine
        self._types = types

    def read(
        self, location: str, schema: pa.Schema, condition: tuple[FuzzColumn, FuzzLeaf] | None, options: dict[str, str]
    ) -> pa.Table | None:
        """Return the rows; None where there is no such filter."""
        asked = None
        if condition is not None:
            asked = self._condition(*condition)
            if asked is None:
                return None
        how = {"filter": None if asked is None else [asked], "options": options or None}
        return table_of(self._engine.ask("read", location, **how)["rows"], schema)

    def _condition(self, column: FuzzColumn, leaf: FuzzLeaf) -> list[Any] | None:
        operator = leaf.operator.lower()
        if operator.startswith("is"):
            return [column.name, operator]
        kind = column.sql.partition("(")[0]
        if leaf.beginning is not None:
            return [column.name, "starts with", leaf.beginning]
        if kind not in self._types or operator.endswith("like"):
            return None
        values = [None if value is None else _canonical(kind, value) for value in leaf.values]
        # A literal that the type lacks is None, which stands for NULL only where the condition has it.
        return None if values.count(None) > leaf.values.count(None) else [column.name, operator, *values]


def _canonical(kind: str, value: Any) -> Any:
    """Return a literal as canonical JSON; None where the column's type has no such value."""
    if isinstance(value, Fraction) or (kind in _LARGEST and not -_LARGEST[kind] <= value < _LARGEST[kind]):
        return None
    if kind == "DATE":
        return (_EPOCH + timedelta(days=value)).isoformat()
    if kind.startswith("TIMESTAMP"):
        return format_timestamp(value * 1000, is_utc=kind.endswith("LTZ"))
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return format(value, "f") if isinstance(value, Decimal) else value


JAVA_TYPES: Final = frozenset(
    {*_LARGEST, "DECIMAL", "STRING", "VARCHAR", "BYTES", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "BOOLEAN"}
)
PYPAIMON_TYPES: Final = frozenset({*_LARGEST, "STRING", "VARCHAR", "BOOLEAN"})

"""Every type in every file format at once: one table with a column of each, written and read by each engine.

The same for each type alone, which says which one it is that fails, are the long tests of ``test_engines_read_ours.py``
and ``test_we_read_theirs.py``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import pytest
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, Row
from tests.interop.test_we_read_theirs import PYPAIMON_AVRO_GAPS
from tests.interop.values import CASES, FORMATS, UNSUPPORTED, Case

PYPAIMON_GAPS: Final = ("MULTISET",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """A table with a column of each type.

    Attributes:
        cases: by the names of the columns.
        rows: first one of nulls, then the values of all columns side by side, with nulls where a column has no more.
    """

    cases: dict[str, Case]
    rows: list[Row]

    @classmethod
    def of(cls, cases: tuple[Case, ...], file_format: str, *, without: tuple[str, ...] = ()) -> Self:
        """Return a table of all types that the format has, without those that begin with some words."""
        kept = [
            each for each in cases if (each.sql, file_format) not in UNSUPPORTED and not each.sql.startswith(without)
        ]
        named = {f"c{number}": each for number, each in enumerate(kept)}
        values = {name: (None, *each.values_in(file_format)) for name, each in named.items()}
        rows = [
            {"id": i, **{name: each[i] if i < len(each) else None for name, each in values.items()}}
            for i in range(max(map(len, values.values())))
        ]
        return cls(cases=named, rows=rows)

    def create(self, location: Path, file_format: str) -> None:
        """Create it, without rows."""
        columns = ", ".join(f"{name} {case.sql}" for name, case in self.cases.items())
        ours.create(location, f"id INT, {columns}", options={"file.format": file_format})


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_engine_reads_a_table_of_every_type(engine: Engine, location: Path, file_format: str) -> None:
    wide = Wide.of(CASES, file_format, without=PYPAIMON_GAPS if engine.name == "pypaimon" else ())
    wide.create(location, file_format)
    ours.append(location, wide.rows[:2])
    ours.append(location, wide.rows[2:])
    assert ours.read(location) == sort_rows(wide.rows)
    assert engine.read(location) == sort_rows(wide.rows)
    for columns in (list(wide.cases)[::2], list(wide.cases)[1::2]):
        expected = sort_rows({name: row[name] for name in columns} for row in wide.rows)
        assert engine.read(location, columns=columns) == expected


@pytest.mark.parametrize("file_format", FORMATS)
def test_we_read_what_an_engine_writes_to_a_table_of_every_type(
    engine: Engine, location: Path, file_format: str
) -> None:
    without = PYPAIMON_GAPS + (PYPAIMON_AVRO_GAPS if file_format == "avro" else ())
    wide = Wide.of(CASES, file_format, without=without if engine.name == "pypaimon" else ())
    wide.create(location, file_format)
    ours.append(location, wide.rows[:1])
    engine.append(location, wide.rows[1:])
    assert ours.read(location) == sort_rows(wide.rows)
    for columns in (list(wide.cases)[::2], list(wide.cases)[1::2]):
        expected = sort_rows({name: row[name] for name in columns} for row in wide.rows)
        assert ours.read(location, columns=columns) == expected

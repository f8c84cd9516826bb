"""Values of columns that changed their type are what Java Paimon 1.4.2 reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from tests.interop.canonical import rows_of, table_of

from penstock.datafile.evolve import can_cast, plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.errors import SchemaMismatchError
from penstock.format.types.data_types import DataField, DataType
from penstock.format.types.text import parse_sql_type

PAIRS: Final = [
    json.loads(line)
    for line in (Path(__file__).parent / "casts" / "java142.jsonl").read_text(encoding="utf-8").splitlines()
]
READ: Final = [pair for pair in PAIRS if pair["outcome"] == "read"]
# Later versions of Java Paimon read ISO timestamps, and so does this project.
UNREADABLE: Final = [pair for pair in PAIRS if pair["outcome"] == "unreadable" and "2024-02-29T" not in str(pair)]

# Seconds that fit milliseconds, though no calendar of Python's.
YEAR_285_MILLION: Final = 9_007_199_254_740_993
EARLY: Final = ("0001-", "1969-")


def differs_on_purpose(pair: dict[str, Any], written: Any, read: Any) -> bool:
    """Cells of which Java 1.4.2 makes something else: its later versions, and this project, don't."""
    source, target = pair["from"], pair["to"]
    if source.startswith("TIMESTAMP") and (target == "DATE" or target.startswith("TIME(")):
        return written.startswith(EARLY)  # it divides towards 1970 and gives the next day, or a negative time
    # It forgets the zeros in front of a fraction when it counts digits, and so cuts nothing.
    return (source, target, read) == ("TIMESTAMP(9)", "TIMESTAMP(3)", "1969-12-31T23:59:59.000000001")


def is_beyond_us(pair: dict[str, Any], written: Any) -> bool:
    """Values that Java reads and for which there is no canonical Arrow value, or that wrap around in Java."""
    source, target = pair["from"], pair["to"]
    if target in ("TIMESTAMP(7)", "TIMESTAMP(9)") and isinstance(written, str):
        return written.startswith(("0001-", "9999-"))
    if source == "BIGINT" and target.startswith("TIMESTAMP"):
        return abs(written) > (2**33 if target in ("TIMESTAMP(7)", "TIMESTAMP(9)") else 2**40)
    return written == "0x1p3"  # hexadecimal floating-point literals


def cast(values: list[Any], source: DataType, target: DataType) -> list[Any]:
    old = DataField(id=1, name="c", type=source)
    evolution = plan_evolution((old,), (DataField(id=1, name="c", type=target),))
    table = table_of([{"c": value} for value in [*values, None]], to_arrow_schema((old,)))
    read = evolution.apply(table.combine_chunks().to_batches()[0])
    assert read.schema == to_arrow_schema(evolution.read_fields)
    *found, last = [row["c"] for row in rows_of(pa.Table.from_batches([read]))]
    assert last is None
    return found


# One test a type that is cast: a test for each of the 900 pairs costs more than the cast that it makes.
@pytest.mark.parametrize("source", sorted({pair["from"] for pair in READ}))
def test_cast_values_are_those_that_java_reads(source: str) -> None:
    wrong = []
    for pair in READ:
        if pair["from"] == source:
            cells = [cell for cell in pair["cells"] if not is_beyond_us(pair, cell[0])]
            found = cast([written for written, _ in cells], parse_sql_type(source), parse_sql_type(pair["to"]))
            wrong += [
                (pair["to"], written, read, ours)
                for (written, read), ours in zip(cells, found, strict=True)
                if ours != read and not differs_on_purpose(pair, written, read)
            ]

    assert not wrong


@pytest.mark.parametrize("source", sorted({pair["from"] for pair in READ}))
def test_what_cannot_be_expressed_is_an_error_and_never_another_value(source: str) -> None:
    beyond = [
        (pair["to"], written)
        for pair in READ
        for written, _ in pair["cells"]
        if pair["from"] == source and is_beyond_us(pair, written) and written != YEAR_285_MILLION
    ]
    for target, written in beyond:
        with pytest.raises(SchemaMismatchError, match="column 'c'"):
            cast([written], parse_sql_type(source), parse_sql_type(target))


@pytest.mark.parametrize("pair", UNREADABLE, ids=lambda pair: f"{pair['from']}-{pair['to']}")
def test_text_that_is_no_value_is_an_error_here_too(pair: dict[str, Any]) -> None:
    with pytest.raises(SchemaMismatchError, match="column 'c'"):
        cast(pair["values"], parse_sql_type(pair["from"]), parse_sql_type(pair["to"]))


def test_a_column_may_become_what_java_lets_it_become() -> None:
    wrong = [
        (pair["from"], pair["to"])
        for pair in PAIRS
        if can_cast(parse_sql_type(pair["from"]), parse_sql_type(pair["to"])) != (pair["outcome"] != "refused")
    ]

    assert not wrong
    assert len(PAIRS) > 900

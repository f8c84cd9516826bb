"""Directory names as Paimon 1.4.2 makes them; data/partition_names/PartitionNames.java printed them."""

import json
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.format.text.partitions import partition_dir
from penstock.format.types.data_types import AtomicType, DataField, TypeRoot
from penstock.format.types.text import parse_sql_type

NAMES = Path(__file__).parent / "data" / "partition_names" / "names.jsonl"
CASES = [json.loads(line) for line in NAMES.read_text().splitlines()]


def internal_value(value: Any, data_type: AtomicType) -> object:
    if data_type.root is TypeRoot.FLOAT:
        # The double of the same number, as every FLOAT inside.
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    if data_type.root is TypeRoot.DOUBLE:
        return float(value)
    return Decimal(value) if data_type.root is TypeRoot.DECIMAL else value


@pytest.mark.parametrize("sql", sorted({case["type"] for case in CASES}))
def test_partition_directory_is_javas(sql: str) -> None:
    data_type = parse_sql_type(sql)
    assert isinstance(data_type, AtomicType)
    fields = (DataField(id=0, name="p", type=data_type),)
    cases = [case for case in CASES if case["type"] == sql]
    found = [
        [
            partition_dir(
                fields, (internal_value(case["value"], data_type),), default_name="__NONE__", legacy_name=legacy
            )
            for legacy in (True, False)
        ]
        for case in cases
    ]
    assert found == [[case["legacy"], case["cast"]] for case in cases]


def test_every_type_that_may_partition_is_among_the_names() -> None:
    roots = {parse_sql_type(case["type"]).root for case in CASES}  # type: ignore[union-attr] # atomic, all of them
    assert roots == set(TypeRoot) - {
        TypeRoot.BINARY,  # Java's name is another one in every run
        TypeRoot.VARBINARY,
        TypeRoot.VARIANT,
        TypeRoot.BLOB,
        TypeRoot.GEOMETRY,
        TypeRoot.GEOGRAPHY,
    }
    assert any(math.isnan(float(case["value"])) for case in CASES if case["type"] == "DOUBLE")

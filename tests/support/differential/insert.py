"""Check INSERT between columns of two types: it must keep every value, or fail."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

import penstock

PAIRS: Final = (
    ("BIGINT", "DOUBLE", pa.int64(), (0, 2**53, 2**53 + 1, -(2**63))),
    ("INT", "FLOAT", pa.int32(), (1, 2**24, 2**24 + 1, 2**31 - 1)),
    ("SMALLINT", "FLOAT", pa.int16(), (1, 2**15 - 1)),
    # 01:30 in Los Angeles, which occurs twice on that day.
    ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6)", pa.timestamp("us", "UTC"), (1730622600000000, 1730626200000000)),
)


def insert_differs(catalog: penstock.Catalog, pair: int, prefix: str, spark: Any) -> str | None:
    """Insert from one table into another; return a text if values have changed, else None.

    Args:
        pair: index in ``PAIRS``.
        prefix: prefix of the names of the two tables, with their database.
    """
    source, target, arrow, values = PAIRS[pair]
    given = catalog.create_table(f"{prefix}_from", f"x {source}")
    taken = catalog.create_table(f"{prefix}_to", f"x {target}")
    given.append(pa.table({"x": pa.array(values, arrow)}))
    database, _, name = prefix.partition(".")
    script = f"USE {database}; INSERT INTO {name}_to SELECT x FROM {name}_from"  # noqa: S608 - names of ours
    try:
        penstock.sql(spark, catalog, script)
    except Exception:  # noqa: BLE001 - any refusal is correct
        return None
    arrived: list[Any] = taken.to_arrow()["x"].to_pylist()
    if source.startswith("TIMESTAMP"):
        exact = len(set(arrived)) == len(values)
    else:
        exact = sorted(map(int, arrived)) == sorted(values)
    return None if exact else f"INSERT of {source} into {target}: {values} became {arrived}"

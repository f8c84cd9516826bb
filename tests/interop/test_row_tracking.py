"""Java Paimon and we write, change and compact a table in turns, and its rows keep their ids."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.interop import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.engines import JavaPaimon, Row

TRACKED = ("_ROW_ID", "_SEQUENCE_NUMBER")


# Java fails on all Avro files of such a table, also on its own.
@pytest.mark.parametrize(
    ("file_format", "dense", "vectors"),
    [
        ("parquet", "true", "false"),
        ("parquet", "false", "false"),
        ("orc", "true", "false"),
        ("parquet", "true", "true"),
    ],
)
def test_rows_keep_their_ids_when_java_or_we_rewrite_them(
    java: JavaPaimon, location: Path, file_format: str, dense: str, vectors: str
) -> None:
    options = {
        "row-tracking.enabled": "true",
        "deletion-vectors.enabled": vectors,
        "file.format": file_format,
        "metadata.stats-dense-store": dense,
        "compaction.min.file-num": "2",
    }
    java.create(location, [("k", "INT"), ("s", "STRING"), ("p", "INT")], options=options, partition=["p"])
    r = random.Random(f"{file_format} {dense}")  # noqa: S311 - not for secrets
    rows: dict[int, Row] = {}
    next_key = 0
    for step in range(12):
        kind = "append" if step < 2 else r.choice(["append", "compact", "update", "move", "delete"])
        writer = r.choice([java, ours])
        before = _read(java, location) if step else {}
        keys = {key for key in before if r.random() < 0.3}
        where = f"k IN ({', '.join(map(str, [-1, *keys]))})"
        match kind:
            case "append":
                new: list[Row] = [{"k": next_key + n, "s": f"new {n}", "p": n % 2} for n in range(7)]
                next_key += len(new)
                writer.append(location, new)
                rows |= {row["k"]: row for row in new}
            case "compact":
                java.ask("compact", location) if writer is java else ours.load(location).compact()
            case "update":
                ours.load(location).update({"s": f"step {step}"}, where)
                rows |= {key: {**rows[key], "s": f"step {step}"} for key in keys}
            case "move":
                ours.load(location).update({"p": 5}, where)
                rows |= {key: {**rows[key], "p": 5} for key in keys}
            case "delete":
                ours.load(location).delete(where)
                rows = {key: row for key, row in rows.items() if key not in keys}
        after = _read(java, location)
        ids = [row["_ROW_ID"] for row in after.values()]
        assert len(set(ids)) == len(ids) == len(rows)
        for key, row in after.items():
            assert {name: row[name] for name in ("k", "s", "p")} == rows[key], (step, kind)
            if key in before:
                assert row["_ROW_ID"] == before[key]["_ROW_ID"], (step, kind)
                is_changed = kind in {"update", "move"} and key in keys
                assert (row["_SEQUENCE_NUMBER"] > before[key]["_SEQUENCE_NUMBER"]) is is_changed, (step, kind)
        found = ours.load(location).to_arrow(["k", *TRACKED]).to_pylist()
        assert found == [] or {row["k"]: tuple(row[name] for name in TRACKED) for row in found} == {
            key: tuple(row[name] for name in TRACKED) for key, row in after.items()
        }, (step, kind)
        for key in list(rows)[:3]:
            assert ours.load(location).to_arrow(["k"], filter=f"k = {key}").to_pylist() == [{"k": key}]


def _read(java: JavaPaimon, location: Path) -> dict[int, Row]:
    return {row["k"]: row for row in java.read(location.with_name(f"{location.name}$row_tracking"))}

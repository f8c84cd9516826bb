"""An engine that applies deletion vectors reads the same rows of a table as we do."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.deletion_vectors import delete_by_vectors
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, JavaPaimon, Row

from penstock.format.deletion_vector import encode_deletion_vector


def test_the_same_rows_are_deleted(engine: Engine, location: Path) -> None:
    ours.create(location, "k INT, n INT", options={"bucket": "-1"})
    rows: list[Row] = [{"k": k, "n": k} for k in range(40)]
    ours.append(location, rows[:20])
    ours.append(location, rows[20:])
    table = ours.load(location)
    names = [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]
    delete_by_vectors(table, {names[0]: [0, 7, 19], names[1]: list(range(5, 15))})
    schema = location / "schema" / "schema-0"
    stored = json.loads(schema.read_text())
    stored["options"]["deletion-vectors.enabled"] = "true"
    schema.write_text(json.dumps(stored))
    found = ours.read(location)
    assert len(found) == 27
    assert engine.read(location) == sort_rows(found)
    table = ours.load(location)
    table.delete("k IN (1, 39)")
    table.update({"n": -1}, "k IN (2, 38)")
    found = ours.read(location)
    assert [row["k"] for row in found if row["n"] == -1] == [2, 38]
    assert len(table.files()) == 4
    assert engine.read(location) == sort_rows(found)


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_rows_that_java_deletes_are_gone(java: JavaPaimon, location: Path, bitmap64: str) -> None:
    options = {"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bitmap64}
    java.create(location, [("k", "INT"), ("n", "INT")], options=options)
    for start in (0, 20):
        java.append(location, [{"k": k, "n": k % 3} for k in range(start, start + 20)])
    names = [row["file_path"].rpartition("/")[2] for row in ours.load(location).files().to_pylist()]
    for positions in ([0, 7, 19], [8]):
        java.ask("delete_positions", location, rows={names[0]: positions})
    found = ours.read(location)
    assert len(found) == 36
    assert java.read(location) == sort_rows(found)


def test_vectors_equal_those_of_java_byte_by_byte(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "k INT")
    shuffled = np.random.default_rng(1).permutation(200_000)
    for rows in (
        [0],
        [5, 70_000],
        range(3, 500),
        [*range(5, 500), *range(70_000, 70_005), 200_000, *range(300_000, 300_050)],
        [*range(0, 20_000, 3), *range(70_000, 131_072)],
        [*range(65_536), 65_536 * 5],
        [*range(0, 40, 4), *range(65_536, 65_540), 131_072, 196_608, 262_144],
        sorted(shuffled[:100_000].tolist()),
    ):
        positions = list(rows)
        expected = java.ask("deletion_vectors", location, positions=positions)
        for vector, is_64 in zip(expected, (False, True), strict=True):
            assert encode_deletion_vector(np.array(positions), is_64=is_64).hex() == vector


@pytest.mark.parametrize("buckets", ["-1", "1"])
@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_both_engines_write_a_table_with_deleted_rows(
    java: JavaPaimon, location: Path, bitmap64: str, buckets: str
) -> None:
    """Java deletes by vectors; we append, delete, update and compact; Java deletes again."""
    options = {
        "bucket": buckets,
        **({"bucket-key": "k"} if buckets == "1" else {}),
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": bitmap64,
        "write-only": "true",
    }
    java.create(location, [("k", "INT"), ("n", "INT")], options=options)
    for start in (0, 20, 40):
        java.append(location, [{"k": k, "n": k % 3} for k in range(start, start + 20)])
    table = ours.load(location)
    left = set(range(60))

    def delete_by_java(keys: Mapping[str, Sequence[int]]) -> None:
        java.ask("delete_positions", location, rows=dict(keys))

    def check() -> None:
        assert {row["k"] for row in java.read(location)} == left
        assert {row["k"] for row in ours.read(location)} == left

    first, second, third = [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]
    delete_by_java({first: [0, 7], second: [1], third: [2, 3]})
    left -= {0, 7, 21, 42, 43}
    check()
    ours.append(location, [{"k": 60, "n": 0}])
    left.add(60)
    check()
    # The vectors of the other two are in the same index file, and are copied.
    assert table.delete("k = 5").rows_deleted == 1
    left.discard(5)
    check()
    delete_by_java({first: [6], second: [4], third: [0]})
    left -= {6, 24, 40}
    check()
    assert table.update({"n": 9}, "k IN (4, 8, 25)").rows_updated == 3
    check()
    assert sorted(row["k"] for row in java.read(location) if row["n"] == 9) == [4, 8, 25]
    assert table.delete("k >= 40 AND k < 60").rows_deleted == 17
    left -= set(range(40, 60))
    check()
    assert third not in [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]
    table.compact(options={"compaction.delete-ratio-threshold": "0"})
    check()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None
    merged = table.files().to_pylist()[0]["file_path"].rpartition("/")[2]
    delete_by_java({merged: [0]})
    assert len(java.read(location)) == len(ours.read(location)) == len(left) - 1


@pytest.mark.parametrize(("buckets", "bitmap64"), [("-1", "false"), ("-1", "true"), ("1", "false"), ("1", "true")])
def test_both_delete_in_turns_at_random(java: JavaPaimon, location: Path, buckets: str, bitmap64: str) -> None:
    chance = random.Random(f"{buckets}{bitmap64}")  # noqa: S311 - not for secrets
    options = {
        "bucket": buckets,
        **({"bucket-key": "k"} if buckets == "1" else {}),
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": bitmap64,
        "deletion-vector.index-file.target-size": "40 b",
        "write-only": "true",
    }
    ours.create(location, "k INT, n INT", options=options)
    for step in range(12):
        if step % 3 == 0:
            ours.append(location, [{"k": 100 * step + k, "n": 0} for k in range(60)])
        table = ours.load(location)
        low = 100 * chance.randrange(step + 1) + chance.randrange(60)
        if chance.random() < 0.5:
            table.delete(f"k >= {low} AND k < {low + 9}")
        else:
            table.update({"n": step}, f"k >= {low} AND k < {low + 5}")
        name = chance.choice(ours.load(location).files().to_pylist())["file_path"].rpartition("/")[2]
        java.ask("delete_positions", location, rows={name: [0]})
        found = sort_rows(ours.read(location))
        assert java.read(location) == found
    table = ours.load(location)
    table.versions.rollback_to_as_latest(snapshot_id=12)
    assert java.read(location) == sort_rows(ours.read(location)) == java.read(location, snapshot=12) != found
    java.ask("compact", location)
    assert java.read(location) == java.read(location, snapshot=12)
    assert not ours.load(location).inspect.fsck().findings

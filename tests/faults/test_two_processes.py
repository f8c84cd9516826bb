"""Several real processes commit to one table at once."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.forking import Forker

import penstock
from penstock.format.row.bucket import bucket_of
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import BIGINT
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Commits ``count`` times and notes the snapshot id of each commit. Unless ``free``, all begin their next commit when
# all have made the one before: as fast as each can, one may well be done before the others have won their first race.
WRITER = """
import json, pathlib, time
import pyarrow as pa
import penstock

def meet(root, number, writers):
    limit = time.monotonic() + 120
    while len(list(root.glob(f"ready-{number}-*"))) < writers:
        assert time.monotonic() < limit, f"the others did not come to commit {number}"
        time.sleep(0.002)

def work(root, me, counts, kind, p, free=False):
    table = penstock.Catalog(root + "/warehouse").load_table("db.t")
    root = pathlib.Path(root)
    note = []
    for number in range(counts[me]):
        if number == 0 or not free:
            (root / f"ready-{number}-{me}").touch()
            meet(root, number, sum(count > number for count in counts))
        keys = range(number * 4, number * 4 + 4)
        rows = pa.table({
            "k": pa.array(keys, pa.int64()), "writer": pa.array([me] * 4, pa.int32()),
            "number": pa.array([number] * 4, pa.int32()), "p": [p] * 4,
        })
        snapshot = getattr(table, kind)(rows)
        note.append([snapshot.id, me, number, kind, p])
    (root / f"note-{me}").write_text(json.dumps(note))
"""

SCHEMA = "k BIGINT, writer INT, number INT, p STRING"


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker(WRITER) as forker:
        yield forker


def make_table(root: Path) -> penstock.Table:
    catalog = penstock.Catalog(f"{root}/warehouse")
    catalog.create_database("db")
    return catalog.create_table(
        "db.t",
        SCHEMA,
        partition_by=["p"],
        options={
            "bucket": "2",
            "bucket-key": "k",
            "manifest.merge-min-count": "4",
            # Writers that do nothing but commit make the others lose many races in a row.
            "commit.max-retries": "1000",
            "commit.max-retry-wait": "100 ms",
            "write-only": "true",  # each snapshot is a commit of the writers
        },
    )


def race(forker: Forker, root: Path, writers: list[dict[str, Any]]) -> list[tuple[int, int, int, str, str]]:
    """What each commit did, by snapshot id."""
    counts = [arguments.pop("count") for arguments in writers]
    pids = [forker.start(root=str(root), me=me, counts=counts, **arguments) for me, arguments in enumerate(writers)]
    assert [forker.wait(pid) for pid in pids] == [0] * len(writers)
    notes = (json.loads((root / f"note-{me}").read_text()) for me in range(len(writers)))
    return sorted(tuple(each) for note in notes for each in note)


def check_history(table: penstock.Table, commits: list[tuple[int, int, int, str, str]]) -> None:
    """Replay the commits in the order of their snapshots: every one of these must hold just what it should."""
    assert [each[0] for each in commits] == list(range(1, len(commits) + 1))
    assert table._store.list_snapshot_ids() == tuple(range(1, len(commits) + 1))
    expected: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for snapshot_id, me, number, kind, p in commits:
        expected[p] = [(me, number)] if kind == "overwrite" else [*expected[p], (me, number)]
        snapshot = table._store.load_snapshot(snapshot_id)
        assert snapshot.commit_kind is (CommitKind.OVERWRITE if kind == "overwrite" else CommitKind.APPEND)
        assert snapshot.total_record_count == 4 * sum(map(len, expected.values()))
        entries = load_live_entries(table._store, snapshot).values()
        assert sum(entry.file.row_count for entry in entries) == snapshot.total_record_count
        ends: dict[tuple[bytes, int], int] = {}
        for entry in sorted(entries, key=lambda each: each.file.min_sequence_number):
            key = (entry.partition, entry.bucket)
            assert entry.file.min_sequence_number == ends.get(key, 0)
            ends[key] = entry.file.max_sequence_number + 1
    found: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in table.to_arrow().to_pylist():
        found[row["p"]][row["writer"], row["number"]].append(row["k"])
    assert {p: set(groups) for p, groups in found.items()} == {p: set(pairs) for p, pairs in expected.items()}
    for groups in found.values():
        for (_, number), keys in groups.items():
            assert sorted(keys) == list(range(number * 4, number * 4 + 4))


def turns(commits: list[tuple[int, int, int, str, str]]) -> int:
    """How often the writer changed from one snapshot to the next."""
    return sum(one[1] != two[1] for one, two in itertools.pairwise(commits))


@pytest.mark.parametrize(("writers", "count"), [(2, 10), (4, 6)])
def test_appends_of_several_processes_all_land_once_and_in_order(
    writers: int, count: int, forker: Forker, tmp_path: Path
) -> None:
    table = make_table(tmp_path)
    commits = race(forker, tmp_path, [{"count": count, "kind": "append", "p": "a"} for _ in range(writers)])
    assert len(commits) == writers * count
    assert turns(commits) >= count * (writers - 1)
    check_history(table, commits)
    order: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in table.to_arrow().to_pylist():
        order[row["writer"], bucket_of([row["k"]], [BIGINT], 2)].append(row["k"])
    assert all(keys == sorted(keys) for keys in order.values())


def test_appends_and_overwrites_of_several_processes_replace_what_was_there_and_nothing_else(
    forker: Forker, tmp_path: Path
) -> None:
    table = make_table(tmp_path)
    commits = race(
        forker,
        tmp_path,
        [
            {"count": 10, "kind": "append", "p": "a"},
            {"count": 6, "kind": "overwrite", "p": "a"},
            {"count": 6, "kind": "overwrite", "p": "b"},
        ],
    )
    assert turns(commits) >= 6 * 2
    check_history(table, commits)


@pytest.mark.slow
def test_many_commits_of_many_processes(forker: Forker, tmp_path: Path) -> None:
    table = make_table(tmp_path)
    kinds = [("append", "a"), ("append", "a"), ("overwrite", "b"), ("append", "b"), ("overwrite", "c"), ("append", "c")]
    commits = race(forker, tmp_path, [{"count": 100, "kind": kind, "p": p, "free": True} for kind, p in kinds])
    check_history(table, commits)

"""Many processes append to one table at the same moment, with the options that every table has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.faults.forking import Forker

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER = """
import json, pathlib, time
import pyarrow as pa
import penstock

def work(root, me, writers, count):
    table = penstock.Catalog(root + "/warehouse").load_table("db.t")
    pathlib.Path(f"{root}/ready-{me}").touch()
    while len(list(pathlib.Path(root).glob("ready-*"))) < writers:
        time.sleep(0.05)
    seconds = []
    for number in range(count):
        start = time.monotonic()
        table.append(pa.table({"k": pa.array([me * 1000 + number], pa.int64())}))
        seconds.append(time.monotonic() - start)
    pathlib.Path(f"{root}/seconds-{me}").write_text(json.dumps(seconds))
"""
WORST_SECONDS = 60


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker(WRITER) as forker:
        yield forker


@pytest.mark.parametrize(
    ("writers", "count", "options"),
    [
        (8, 3, {}),
        pytest.param(16, 3, {}, marks=pytest.mark.slow),
        pytest.param(64, 3, {}, marks=pytest.mark.slow),
        pytest.param(64, 3, {"bucket": "2", "bucket-key": "k"}, marks=pytest.mark.slow),
    ],
)
def test_every_append_of_many_processes_lands(
    writers: int, count: int, options: dict[str, str], forker: Forker, tmp_path: Path
) -> None:
    catalog = penstock.Catalog(f"{tmp_path}/warehouse")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT", options=options)
    pids = [forker.start(root=str(tmp_path), me=me, writers=writers, count=count) for me in range(writers)]
    assert [forker.wait(pid) for pid in pids] == [0] * writers
    expected = sorted(me * 1000 + number for me in range(writers) for number in range(count))
    assert sorted(table.to_arrow()["k"].to_pylist()) == expected
    seconds = sorted(each for me in range(writers) for each in json.loads((tmp_path / f"seconds-{me}").read_text()))
    print(f"\n{writers} x {count}: worst {seconds[-1]:.1f} s, median {seconds[len(seconds) // 2]:.2f} s")  # noqa: T201
    assert seconds[-1] <= WORST_SECONDS

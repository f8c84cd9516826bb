"""Processes on an object store that is slow, refuses requests and loses answers: nothing is lost or doubled."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.faults.forking import Forker
from tests.faults.store.faulty_proxy import Faults, FaultyProxy

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.s3_server import S3Bucket

PROCESSES = 5
STEP = 100_000
KILLED_AT_ONCE = 5
END_SECONDS = 240
QUEUE = {"bucket": "2", "bucket-key": "k"}
SCALABLE = {"bucket": "-1"}
SOAK = pytest.mark.timeout(3_000)

SCRIPT = """
import json, os, pathlib, time
import pyarrow as pa
import penstock
from penstock.io.resolve import resolve

def gather(directory, me, count):
    pathlib.Path(f"{directory}/ready-{me}").touch()
    while len(list(pathlib.Path(directory).glob("ready-*"))) < count:
        time.sleep(0.02)

def race(root, options, directory, me, processes, names):
    file_io, root = resolve(root, options)
    file_io.list(root)
    gather(directory, me, processes)
    won = [n for n in range(names) if file_io.put_if_absent(f"{root}/{n}", f"{me} {n} ".encode() * 50)]
    pathlib.Path(f"{directory}/won-{me}").write_text(json.dumps(won))

def append(root, options, directory, first):
    table = penstock.Catalog(root, options).load_table("db.t")
    acks = os.open(f"{directory}/acks-{first}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(first, first + 10**5):
        table.append(pa.table({"number": [number] * 3, "k": [1, 2, 3]}))
        os.write(acks, f"{number}\\n".encode())

def work(kind, **arguments):
    {"race": race, "append": append}[kind](**arguments)
"""


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker(SCRIPT) as forker:
        yield forker


@pytest.fixture
def proxy(s3_bucket: S3Bucket) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3_bucket.url, Faults()) as proxy:
        yield proxy


def test_each_name_has_one_winner_among_processes(
    proxy: FaultyProxy, s3_bucket: S3Bucket, forker: Forker, tmp_path: Path
) -> None:
    names, root = 12, f"{s3_bucket.root}/race-{tmp_path.name}"
    options = {**s3_bucket.options, "s3.endpoint": proxy.url}
    pids = [
        forker.start(
            kind="race",
            root=root,
            options=options,
            directory=str(tmp_path),
            me=me,
            processes=PROCESSES,
            names=names,
        )
        for me in range(PROCESSES)
    ]
    assert [forker.wait(pid) for pid in pids] == [0] * PROCESSES
    winners = {n: me for me in range(PROCESSES) for n in json.loads((tmp_path / f"won-{me}").read_text())}
    wins = Counter(n for me in range(PROCESSES) for n in json.loads((tmp_path / f"won-{me}").read_text()))
    assert wins == Counter(range(names))
    for number, me in winners.items():
        assert s3_bucket.file_io.read(f"{root}/{number}") == f"{me} {number} ".encode() * 50
    assert proxy.counts["busy"] > 0
    assert proxy.counts["lost"] > 0


class Scene:
    """A table behind the proxy, and writers that are killed."""

    def __init__(
        self, bucket: S3Bucket, proxy: FaultyProxy, forker: Forker, directory: Path, layout: dict[str, str]
    ) -> None:
        self.directory, self.forker, self.proxy, self.runs = directory, forker, proxy, 0
        self.options = {**bucket.options, "s3.endpoint": proxy.url}
        self.catalog = penstock.Catalog(f"{bucket.root}/kills-{directory.name}", bucket.options)
        self.catalog.create_database("db")
        options = {**layout, "manifest.merge-min-count": "4", "commit.max-retries": "1000"}
        self.catalog.create_table("db.t", "number BIGINT, k BIGINT", options=options)

    def start(self) -> int:
        self.runs += 1
        return self.forker.start(
            kind="append",
            root=self.catalog.warehouse,
            options=self.options,
            directory=str(self.directory),
            first=self.runs * STEP,
        )

    def acknowledged(self, run: int) -> list[int]:
        path = self.directory / f"acks-{run * STEP}"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def kill(self, chance: random.Random, *, among: int) -> None:
        """Start writers, and kill each at a moment that nobody chose after one of them has committed."""
        runs = range(self.runs + 1, self.runs + among + 1)
        pids = [self.start() for _ in runs]
        deadline = time.monotonic() + END_SECONDS
        while not any(self.acknowledged(run) for run in runs):
            assert time.monotonic() < deadline, "nobody commits"
            time.sleep(0.02)
        for pid in chance.sample(pids, len(pids)):
            time.sleep(chance.uniform(0.0, 0.6))
            self.forker.kill(pid)
            assert self.forker.wait(pid) == -9
        while self.proxy.connections:  # the last requests of killed writers may still commit
            assert time.monotonic() < deadline, "a connection of a killed writer stays open"
            time.sleep(0.02)

    def check(self) -> int:
        """Compare what is there with what was acknowledged; return the number of commits that were not."""
        table = self.catalog.load_table("db.t")
        ids = table.snapshots()["snapshot_id"].to_pylist()
        assert ids == list(range(1, len(ids) + 1))
        there = Counter(table.to_arrow()["number"].to_pylist())
        assert set(there.values()) <= {3}
        done = {number for run in range(1, self.runs + 1) for number in self.acknowledged(run)}
        assert set(there) >= done
        # Of each writer at most the one commit that it was at when it was killed.
        extra = Counter(number // STEP for number in set(there) - done)
        assert max(extra.values(), default=0) <= 1
        assert len(there) == len(ids)
        assert table.inspect.fsck(all_snapshots=True).findings == ()
        return extra.total()


@pytest.mark.parametrize(
    ("rounds", "layout"),
    [
        pytest.param(1, QUEUE, marks=pytest.mark.timeout(300)),
        pytest.param(20, QUEUE, marks=[pytest.mark.slow, SOAK]),
        pytest.param(20, SCALABLE, marks=[pytest.mark.slow, SOAK]),
    ],
    ids=["short", "long", "long-scalable"],
)
def test_what_killed_writers_acknowledged_is_there_once(
    rounds: int,
    layout: dict[str, str],
    proxy: FaultyProxy,
    s3_bucket: S3Bucket,
    forker: Forker,
    tmp_path: Path,
) -> None:
    scene = Scene(s3_bucket, proxy, forker, tmp_path, layout)
    chance = random.Random(15)  # noqa: S311 - no secret
    extra = 0
    for _ in range(rounds):
        scene.kill(chance, among=KILLED_AT_ONCE)
        extra = scene.check()
    table = scene.catalog.load_table("db.t")
    table.remove_orphan_files(older_than=int(time.time() * 1000), dry_run=False, allow_recent=True)
    assert scene.check() == extra
    print(f"\n{KILLED_AT_ONCE * rounds} kills, {extra} commits that nobody acknowledged, {dict(proxy.counts)}")  # noqa: T201

"""Processes whose clocks are wrong by minutes, or by days, on a disk and on an object store: leases and orphans."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from penstock import Catalog, LeaseHeldError
from penstock.table.lease import acquire, find_holder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.s3_server import S3Bucket

    from penstock import Table

# The modification times of files come from the storage, so only what the process itself asks for is wrong.
WRONG_CLOCK: Final = """
import json, sys, time
wrong_by, root, options = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + wrong_by
time.time_ns = lambda: right_ns() + wrong_by * 10**9
from penstock import Catalog
table = Catalog(root, options).load_table("d.t")
"""

HOLDER: Final = f"""{WRONG_CLOCK}
from penstock.table.lease import LeaseKeeper, acquire
handle = table._handle.ref
keeper = LeaseKeeper(acquire(handle.file_io, handle.location, "consumer-c", ttl_ms=6000))
print("held", flush=True)
sys.stdin.readline()
"""

REMOVER: Final = f"""{WRONG_CLOCK}
report = table.remove_orphan_files(dry_run=False)
print(len(report.orphans), flush=True)
"""

MINUTES: Final = 10 * 60
DAYS: Final = 3 * 86_400


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse and the options of its storage."""

    root: str
    options: dict[str, str]

    def make_table(self) -> Table:
        catalog = Catalog(self.root, self.options)
        catalog.create_database("d")
        return catalog.create_table("d.t", "id BIGINT")


@pytest.fixture(params=["disk", pytest.param("store", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "disk":
        return Place(str(tmp_path), {})
    bucket: S3Bucket = request.getfixturevalue("s3_bucket")
    return Place(f"{bucket.root}/{uuid.uuid4()}", bucket.options)


def start(program: str, place: Place, wrong_by: int) -> subprocess.Popen[str]:
    arguments = [str(wrong_by), place.root, json.dumps(place.options)]
    # In a namespace of process ids of its own, where that is allowed: a holder there is not known to be alive or dead.
    apart = ["unshare", "-p", "--fork", "--mount-proc"] if os.geteuid() == 0 and has_namespaces() else []
    return subprocess.Popen(
        [*apart, sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def has_namespaces() -> bool:
    return subprocess.run(["unshare", "-p", "--fork", "--mount-proc", "true"], check=False).returncode == 0


@pytest.fixture(params=[MINUTES, -MINUTES], ids=["fast", "slow"])
def holder(request: pytest.FixtureRequest, place: Place) -> Iterator[subprocess.Popen[str]]:
    """A process with a wrong clock that keeps the lease ``consumer-c``."""
    place.make_table()
    process = start(HOLDER, place, request.param)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate()


def test_a_living_holder_keeps_its_lease_and_a_dead_one_not(place: Place, holder: subprocess.Popen[str]) -> None:
    ref = Catalog(place.root, place.options).load_table("d.t")._handle.ref
    assert find_holder(ref.file_io, ref.location, "consumer-c") is not None
    with pytest.raises(LeaseHeldError, match="'consumer-c' is in use by process"):
        acquire(ref.file_io, ref.location, "consumer-c")

    os.killpg(holder.pid, signal.SIGKILL)
    began = time.monotonic()
    assert acquire(ref.file_io, ref.location, "consumer-c").epoch == 2
    assert time.monotonic() - began < 30


def test_files_that_others_write_are_no_orphans(place: Place) -> None:
    table = place.make_table()
    table.append(pa.table({"id": [1]}))
    ref = table._handle.ref
    unfinished = f"{ref.location}/bucket-0/data-{uuid.uuid4()}-0.parquet"
    ref.file_io.write(unfinished, b"a job writes this")
    output, _ = start(REMOVER, place, DAYS).communicate()
    assert output == "0\n"
    assert ref.file_io.exists(unfinished)

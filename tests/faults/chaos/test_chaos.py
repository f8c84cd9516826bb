"""Producers, compactors, an expirer, an orphan remover and readers of one table, killed one after the other."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.chaos.checker import Contents
from tests.faults.chaos.scene import STORE, Scene, now_millis
from tests.faults.chaos.supervisor import Supervisor
from tests.faults.chaos.workers import PRODUCERS
from tests.faults.forking import Forker
from tests.faults.store.faulty_proxy import Faults, FaultyProxy
from tests.support.garbage import needed_files, stored_files, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.s3_server import S3Bucket

SCRIPT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.faults.chaos.workers import work
"""
SOAK_SECONDS = 3_000
# Whatever else happens: merges of both kinds, a commit that its own producer did not live to see, and files that
# killed processes left.
NEEDED = frozenset({"compactions", "committed_merges", "landed_before", "expired", "orphans_data", "scans"})


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker(SCRIPT) as forker:
        yield forker


def check_end(scene: Scene, supervisor: Supervisor) -> None:
    """All have come to their end: what is there is what was acknowledged, and no file is missing or left over."""
    table = scene.load_table()
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    contents = Contents.of(table.to_arrow(), scene.buckets)
    assert contents.batches == {producer: scene.acknowledged(producer) for producer in PRODUCERS}
    if scene.is_queue:
        assert contents.sequences == supervisor.delivered.sequences
    table.expire_snapshots(retain_min=1, older_than=now_millis())  # goes on where the last one was stopped
    table.remove_orphan_files(older_than=now_millis(), dry_run=False, allow_recent=True)
    assert stored_files(table._ref) == needed_files(table._ref)
    files = set(walk(table._ref.file_io, table.location))
    assert not [path for path in files if path.endswith(".tmp")]
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def figures(scene: Scene, supervisor: Supervisor) -> Counter[str]:
    """What the processes noted, as far as they lived to do so."""
    found: Counter[str] = Counter()
    for name, event in scene.events():
        if "error" in event:
            found[f"{name.rpartition('-')[0]}: {event['error']}"] += 1
            continue
        found.update({key: int(value) for key, value in event.items()})
    found["commits"] = sum(map(scene.acknowledged, PRODUCERS))
    found["snapshots"] = getattr(scene.load_table().latest_snapshot(), "id", 0)
    found["kills_in_time"], found["kills_at_calls"] = supervisor.kills.total(), supervisor.deaths.total()
    found["replayed_snapshots"] = supervisor.delivered.replays
    return found


def run(scene: Scene, forker: Forker, chance: random.Random, *, kills: int, seconds: float, pace: float = 1.0) -> None:
    scene.make()
    supervisor = Supervisor(scene, forker, chance, pace=pace)
    supervisor.run(kills, seconds, NEEDED)
    check_end(scene, supervisor)
    found = figures(scene, supervisor)
    deaths = scene.root / "deaths"
    calls = Counter(line.split()[0] for line in deaths.read_text().splitlines()) if deaths.exists() else Counter()
    print(f"\n{scene.buckets} buckets: {dict(sorted(found.items()))}; died at {dict(calls)}")  # noqa: T201 - the figures that the test is about


@pytest.mark.parametrize(
    "buckets", [pytest.param(4, id="queue"), pytest.param(-1, id="scalable", marks=pytest.mark.slow)]
)
def test_no_row_is_lost_or_doubled_and_no_file_missing_or_left_whichever_process_is_killed(
    buckets: int, forker: Forker, tmp_path: Path
) -> None:
    run(Scene(tmp_path, buckets), forker, random.Random(8), kills=6, seconds=3)  # noqa: S311 - no secret


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.parametrize("buckets", [8, -1], ids=["queue", "scalable"])
def test_a_long_soak_of_all_roles_at_once(buckets: int, forker: Forker, tmp_path: Path) -> None:
    run(Scene(tmp_path, buckets), forker, random.Random(), kills=200, seconds=120)  # noqa: S311 - no secret


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS)
@pytest.mark.parametrize("buckets", [4, -1], ids=["queue", "scalable"])
def test_all_roles_at_once_on_a_store_that_is_slow_refuses_and_loses_answers(
    buckets: int, forker: Forker, s3_bucket: S3Bucket, tmp_path: Path
) -> None:
    with FaultyProxy(s3_bucket.url, Faults(busy=0.02, lost=0.02)) as proxy:
        options = {**s3_bucket.options, "s3.endpoint": proxy.url}
        store = {"warehouse": f"{s3_bucket.root}/chaos-{tmp_path.name}", "options": options}
        (tmp_path / STORE).write_text(json.dumps(store))
        run(Scene(tmp_path, buckets), forker, random.Random(9), kills=20, seconds=30, pace=8)  # noqa: S311 - no secret

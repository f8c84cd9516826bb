"""What the processes beside the streams do, each until it is asked to end: ``python -m tests.soak.roles ROLE DIR``."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.soak.processes import keep_released
from tests.soak.scene import (
    BATCH_ROWS,
    BATCH_SECONDS,
    KEPT_SLOTS,
    QUEUE,
    READ,
    SOURCE,
    TABLES,
    WIDE,
    Delivered,
    Scene,
    check_snapshot,
)

from penstock.cli.main import main
from penstock.errors import DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable

    import penstock

RETAIN_SNAPSHOTS: Final = 20
# A job takes seconds; ten minutes cover a machine that others have taken over.
ORPHAN_MILLIS: Final = 600_000


def produce(scene: Scene) -> None:
    """Append rows at a steady pace, and let old slots go."""
    table = scene.table(SOURCE)
    following = _following(table)
    due = time.monotonic()
    while not scene.is_stopped("producer"):
        table.append(scene.rows(following))
        following += BATCH_ROWS
        _note(scene, "produced", following)
        if following % scene.slot_rows == 0:
            drop_old_slots(scene, following // scene.slot_rows)
        due = max(due + BATCH_SECONDS, time.monotonic() - BATCH_SECONDS)
        time.sleep(max(0.0, due - time.monotonic()))


def keep_house(scene: Scene) -> None:
    """Expire snapshots of the tables whose writers do not, and remove orphans, of which it leaves some itself."""
    rounds = 0
    while not scene.is_stopped("housekeeper"):
        for name in (SOURCE, QUEUE):
            scene.table(name).expire_snapshots(retain_max=RETAIN_SNAPSHOTS * 2, retain_min=RETAIN_SNAPSHOTS)
        if rounds % 3 == 0:
            for name in TABLES:
                table = scene.table(name)
                _remove_orphans(table, scene.directory(table))
        rounds += 1
        _note(scene, "housekeeping", rounds)
        _sleep(scene, "housekeeper", 5.0)


def read_batches(scene: Scene) -> None:
    """Read the newest snapshot of each table whole, and compare its rows."""
    done = 0
    while not scene.is_stopped("reader"):
        for name in TABLES:
            rows = scene.table(name).to_arrow(["n", "slot"], options=READ)
            check_snapshot(rows["n"].to_numpy(), rows["slot"].to_numpy(), scene, is_ordered=name != WIDE)
            done += rows.num_rows
        _note(scene, "read", done)
        _sleep(scene, "reader", 3.0)


def consume(scene: Scene) -> None:
    """Follow the queue as a consumer, and see that every row comes once and in order."""
    place = scene.root / "consumed.json"
    delivered = Delivered(json.loads(place.read_text()) if place.exists() else None)
    options = {**READ, "scan.mode": "earliest", "consumer-id": "soak"}
    while not scene.is_stopped("consumer"):
        try:
            for batch in scene.table(QUEUE).follow(["n"], options=options, once=True):
                delivered.check(batch.column(0).to_numpy())
        except DataLossError:
            if scene.table(QUEUE).latest_snapshot() is not None:
                raise
        place.with_suffix(".aside").write_text(json.dumps(delivered.following.tolist()))
        place.with_suffix(".aside").rename(place)
        _note(scene, "consumed", int(delivered.following.min()))
        _sleep(scene, "consumer", 1.0)


def compact(scene: Scene) -> None:
    """Do what ``penstock compact --follow`` does with the queue, until it is interrupted."""
    follow = ["compact", scene.table(QUEUE).location, "--follow", "--interval", "2 s", "--threads", "1"]
    sys.argv[1:] = follow
    main()


ROLES: Final[dict[str, Callable[[Scene], None]]] = {
    "producer": produce,
    "housekeeper": keep_house,
    "reader": read_batches,
    "consumer": consume,
    "compactor": compact,
}
RELEASE_SECONDS: Final = 5.0


def _following(table: penstock.Table) -> int:
    rows = table.to_arrow(["n"])
    return int(rows["n"].to_numpy().max()) + 1 if rows.num_rows else 0


def drop_old_slots(scene: Scene, current: int) -> None:
    """Drop the partitions of each table that are older than the newest few."""
    for name in TABLES:
        table = scene.table(name)
        slots = sorted(
            int("".join(filter(str.isdigit, str(each)))) for each in table.partitions()["partition"].to_pylist()
        )
        # Never a slot that a stream still fills: the tables behind have fewer.
        old = [slot for slot in slots if slot < min(current, slots[-1]) - KEPT_SLOTS + 1]
        if old:
            table.drop_partitions(*({"slot": slot} for slot in old))


def _remove_orphans(table: penstock.Table, directory: Path) -> None:
    """Leave a file that nothing uses, as old as a stopped job's, and have it found."""
    orphan = directory / f"manifest/manifest-{uuid.uuid4()}-0"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"left by a job that stopped")
    now = time.time()
    os.utime(orphan, (now - 86_400, now - 86_400))
    table.remove_orphan_files(older_than=int(now * 1000) - ORPHAN_MILLIS, dry_run=False, allow_recent=True)
    if orphan.exists():
        message = f"{table.name}: orphan removal left an orphan"
        raise AssertionError(message)


def _note(scene: Scene, name: str, value: int) -> None:
    """Leave a number for the one who samples."""
    aside = scene.root / f"{name}.note.aside"
    aside.write_text(str(value))
    aside.rename(scene.root / f"{name}.note")


def _sleep(scene: Scene, role: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not scene.is_stopped(role):
        time.sleep(0.2)


if __name__ == "__main__":
    keep_released(RELEASE_SECONDS)
    ROLES[sys.argv[1]](Scene.at(Path(sys.argv[2])))

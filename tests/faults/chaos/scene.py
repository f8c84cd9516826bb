"""Where the processes of a chaos run meet: the table, what each notes down about itself, and how they are stopped."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import penstock
from penstock.format.row.bucket import bucket_of
from penstock.format.types.data_types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ROWS: Final = 8
KEYS: Final = 64
CONSUMER: Final = "reader"
STORE: Final = "store.json"
# Files change by the storage's clock, which may be a tick behind ours; snapshots bear the time at which they were made
# ready, which is a little before they are there.
SLACK_MS: Final = 2_000
OPTIONS: Final = {
    "manifest.merge-min-count": "5",
    "manifest.full-compaction-threshold-size": "20 kb",
    "target-file-size": "16 kb",
    "source.split.open-file-cost": "1 kb",
}
SCHEMA: Final = "producer STRING, number BIGINT, k BIGINT, p STRING"

Row = tuple[str, int, int, str]


def batch_rows(producer: str, batch: int) -> list[Row]:
    """The rows of a batch, which anybody can tell from its number."""
    return [
        (producer, number, number * 37 % KEYS, "ab"[number // 2 % 2])
        for number in range(batch * ROWS, (batch + 1) * ROWS)
    ]


def to_arrow(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )


@cache
def bucket_of_key(k: int, buckets: int) -> int:
    return bucket_of([k], [BIGINT], buckets) if buckets > 0 else 0


def now_millis() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Scene:
    """One directory for everything.

    Attributes:
        buckets: of the queue; -1 for a scalable table.
    """

    root: Path
    buckets: int

    @property
    def is_queue(self) -> bool:
        return self.buckets > 0

    def make(self) -> None:
        for name in ("acks", "since", "events", "stop", "notes"):
            (self.root / name).mkdir()
        catalog = self.catalog()
        catalog.create_database("db")
        options = {**OPTIONS, "bucket": str(self.buckets)} | ({"bucket-key": "k"} if self.is_queue else {})
        table = catalog.create_table("db.t", SCHEMA, partition_by=["p"], options=options)
        table.maintenance.reset_consumer(CONSUMER, 1)

    def load_table(self) -> penstock.Table:
        return self.catalog().load_table("db.t")

    def catalog(self) -> penstock.Catalog:
        """The warehouse in the same directory, or on the store that somebody has noted there."""
        noted = self.root / STORE
        if not noted.exists():
            return penstock.Catalog(f"{self.root}/warehouse")
        store = json.loads(noted.read_text())
        return penstock.Catalog(store["warehouse"], store["options"])

    # Stopping

    def stop(self, *roles: str) -> None:
        for role in roles:
            (self.root / "stop" / role).touch()

    def is_stopped(self, role: str) -> bool:
        return (self.root / "stop" / role).exists()

    # What a process has begun

    def note_since(self, name: str, millis: int | None = None) -> None:
        """Say that every file of the process from before this moment is committed, deleted, or left for ever.

        A process that takes the place of a killed one does not say so before it knows what became of its commit.
        """
        aside = self.root / "since" / f".{name}"
        aside.write_text(str(now_millis() if millis is None else millis))
        aside.replace(self.root / "since" / name)

    def has_since(self, name: str) -> bool:
        return (self.root / "since" / name).exists()

    def horizon(self, *, age_ms: int, names: str = "*") -> int:
        """The moment before which nothing was begun that still goes on, and at least ``age_ms`` ago."""
        noted = [int(path.read_text()) for path in (self.root / "since").glob(names) if path.name[0] != "."]
        return min([now_millis() - age_ms, *(millis - SLACK_MS for millis in noted)])

    # Logs

    def acknowledge(self, producer: str, batch: int) -> None:
        append_line(self.root / "acks" / producer, str(batch))

    def acknowledged(self, producer: str) -> int:
        """How many batches of a producer were acknowledged."""
        path = self.root / "acks" / producer
        lines = whole_lines(path.read_bytes()) if path.exists() else []
        assert lines == [str(number) for number in range(len(lines))]
        return len(lines)

    def note_event(self, name: str, **event: Any) -> None:
        append_line(self.root / "events" / name, json.dumps(event))

    def events(self) -> Iterable[tuple[str, dict[str, Any]]]:
        """All that was noted, with the name of who noted it."""
        for path in sorted((self.root / "events").iterdir()):
            for line in whole_lines(path.read_bytes()):
                yield path.name, json.loads(line)


def append_line(path: Path, line: str) -> None:
    """Add a line; the first part of one, which a killed process left, goes."""
    with path.open("ab+") as file:
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            file.truncate(whole)
        file.write(f"{line}\n".encode())


def whole_lines(data: bytes) -> list[str]:
    return data[: data.rfind(b"\n") + 1].decode().splitlines()

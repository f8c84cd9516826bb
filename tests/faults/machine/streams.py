"""Streams on a disk that fails: a batch that is committed, with its checkpoint, and a reader with its position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faults.machine.cases import Case, rows

from penstock.datafile.streams import writing
from penstock.errors import NotFoundError
from penstock.io.local import LocalFileIO
from penstock.table.stream_sink.batch_log import BatchNotes, claim_checkpoint
from penstock.table.stream_sink.committer import Batch, StreamCommitter
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    import penstock


@dataclass(frozen=True)
class DiskCheckpoint:
    """Our files in a checkpoint, written as Hadoop writes them: in place, so that a failure leaves half a file."""

    place: str

    def list(self) -> tuple[str, ...]:
        return tuple(status.name for status in LocalFileIO().list(self.place))

    def read(self, name: str) -> bytes | None:
        try:
            return LocalFileIO().read(f"{self.place}/{name}")
        except NotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        path = f"{self.place}/{name}"
        with writing(path), LocalFileIO().open_output(path) as stream:
            stream.write(data)

    def delete(self, name: str) -> None:
        LocalFileIO().delete(f"{self.place}/{name}")


def run_batch(table: penstock.Table, batch_id: int) -> None:
    """Start the query anew and run one batch, which may be in the table already."""
    ref = table._ref
    notes = BatchNotes(DiskCheckpoint(str(Path(table.location).parents[1] / "checkpoint")))
    latest = table._store.latest_snapshot_id() or 0
    mark = claim_checkpoint(ref, notes, base_id=latest, has_batches=batch_id > 0, accept_unknown=False)
    query = StreamCommitter(ref, notes, mark, is_overwrite=False)
    query.committer.sleep = lambda _: None
    batch = Batch(commit_user="query", id=batch_id, digest=f"offsets of {batch_id}")
    ref = query.load_ref()
    if query.begin(batch) is not None:
        query.commit(batch, write_arrow(ref, rows(100 + batch_id, 200 + batch_id)))


def prepare_query(table: penstock.Table) -> None:
    table.append(rows(1))
    run_batch(table, 0)


def prepare_reader(table: penstock.Table) -> None:
    for number in range(4):
        table.append(rows(number, number + 10))
    table.maintenance.reset_consumer("reader", 2)


def read(table: penstock.Table) -> list[int]:
    """Read what is new to the consumer."""
    got: list[int] = []
    read_into(table, got)
    return got


def read_into(table: penstock.Table, got: list[Any]) -> None:
    for batch in table.follow(options={"consumer-id": "reader"}, once=True):
        got += batch.column("k").to_pylist()


BATCH: Final = Case(
    name="commit a micro-batch",
    prepare=prepare_query,
    run=lambda table: run_batch(table, 1),
    is_commit=True,
    is_idempotent=True,
)
READER: Final = Case(name="read as a consumer", prepare=prepare_reader, run=read, is_atomic=False)

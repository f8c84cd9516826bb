"""What the processes of a chaos run do, each until it is stopped or killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faults.chaos.checker import Contents
from tests.faults.chaos.scene import CONSUMER, Scene, append_line, batch_rows, now_millis, to_arrow

from penstock.api.table import Table
from penstock.errors import CommitConflictError, FormatError, NotFoundError, StorageError
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.compact.task import CompactionState
from penstock.table.store import MetadataStore
from penstock.table.stream.tail import LocalStreamReader, PollOptions
from penstock.table.stream_sink.batch_log import BatchNotes, claim_checkpoint
from penstock.table.stream_sink.committer import Batch, StreamCommitter
from penstock.table.write.writer import TableWriter
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import pyarrow as pa

    from penstock.io.file_io import FileIO
    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import Phase

PRODUCERS: Final = ("producer-0", "producer-1", "producer-2")
NAMES: Final = (*PRODUCERS, "compactor-0", "beside-0", "beside-1", "expirer-0", "remover-0", "reader-0", "scanner-0")
MANY_RACES: Final = {"commit.max-retries": "1000", "commit.max-retry-wait": "40 ms"}
# Younger files are nobody's orphans: those of a process that was started a moment ago and has not said so yet.
LEAST_AGE_MS: Final = 2_000
RETAIN_SNAPSHOTS: Final = 3
RETAIN_MS: Final = 1_000
# A round of those that do least has some 40 calls to storage.
LATEST_CALL: Final = 400


@dataclass(frozen=True)
class Death:
    """The call to storage at which a process kills itself.

    Attributes:
        at: number of the call, from 1, among those of the operation.
        operation: None for any.
    """

    at: int
    operation: Operation | None
    is_after: bool

    @staticmethod
    def draw(name: str, chance: random.Random) -> Death:
        """Draw one; every third among all calls, the others among those that what is left behind depends on.

        A producer has most to lose around the call that makes its snapshot.
        """
        latest = {
            Operation.PUT_IF_ABSENT: 6,
            Operation.WRITE: 20,
            Operation.OPEN_OUTPUT: 30,
            Operation.STREAM_CLOSE: 30,
            Operation.DELETE: 30,
        }
        operation = chance.choice(tuple(latest)) if chance.random() < 2 / 3 else None
        if name in PRODUCERS and chance.random() < 1 / 2:
            operation = Operation.PUT_IF_ABSENT
        at = chance.randint(1, latest[operation] if operation else LATEST_CALL)
        return Death(at=at, operation=operation, is_after=chance.random() < 1 / 2)


class DyingFileIO(RecordingFileIO):
    """Kills its process."""

    def __init__(self, inner: FileIO, death: Death, log: Path) -> None:
        super().__init__(inner)
        self._death = death
        self._log = log
        self._left = death.at

    def _call(self, operation: Operation, path: str, effect: Callable[[], Any]) -> Any:
        if self._death.operation in {None, operation}:
            self._left -= 1
            if self._left == 0:
                if self._death.is_after:
                    effect()
                append_line(self._log, f"{operation} {'after' if self._death.is_after else 'before'} {path}")
                os.kill(os.getpid(), signal.SIGKILL)
        return super()._call(operation, path, effect)


def work(name: str, root: str, buckets: int, death: dict[str, Any] | None) -> None:
    """Be one of ``NAMES``.

    Args:
        death: fields of a ``Death``; None to live until somebody else ends it.
    """
    scene = Scene(Path(root), buckets)
    table = scene.load_table()
    if death is not None:
        file_io = DyingFileIO(table._ref.file_io, Death(**death), scene.root / "deaths")
        table = Table(replace(table._ref, file_io=file_io))
    ROLES[name.rpartition("-")[0]](scene, name, table)


class Checkpoint:
    """The notes of a producer, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.place = str(directory)
        directory.mkdir(exist_ok=True)

    def list(self) -> list[str]:
        return [path.name for path in self._directory.iterdir()]

    def read(self, name: str) -> bytes | None:
        path = self._directory / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, data: bytes) -> None:
        (self._directory / name).write_bytes(data)

    def delete(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


def produce(scene: Scene, name: str, table: Table) -> None:
    """Append batch after batch, each acknowledged once its snapshot is there."""
    chance = random.Random()  # noqa: S311 - no secret
    # Not by one that takes another's place: its batch was begun by that one.
    if not scene.has_since(name):
        scene.note_since(name)
    ref = table._ref.with_options(MANY_RACES)
    number = scene.acknowledged(name)
    notes = BatchNotes(Checkpoint(scene.root / "notes" / name))
    latest_id = MetadataStore(ref).latest_snapshot_id() or 0
    mark = claim_checkpoint(ref, notes, base_id=latest_id, has_batches=number > 0, accept_unknown=False)
    committer = StreamCommitter(ref, notes, mark, is_overwrite=False)
    is_last = False
    while not is_last:
        # At least one, also when stopped: the one that a killed process was at.
        is_last = scene.is_stopped("producer")
        begun = now_millis()
        rows = batch_rows(name, number)
        batch = Batch(commit_user=name, id=number, digest=sha256(repr(rows).encode()).hexdigest())
        job_id = committer.begin(batch)
        if job_id is None:
            scene.note_event(name, landed_before=1)
        else:
            with TableWriter(ref, job_id=job_id) as writer:
                writer.write(to_arrow(rows, table.arrow_schema))
                messages = writer.prepare_commit()
            committer.commit(batch, messages)
        scene.acknowledge(name, number)
        number += 1
        # Not now: who takes this one's place may have to look for the batch among all snapshots since.
        scene.note_since(name, begun)
        time.sleep(chance.uniform(0, 0.15))


def compact(scene: Scene, name: str, table: Table) -> None:
    """Compact again and again."""
    chance = random.Random()  # noqa: S311 - no secret
    while not scene.is_stopped("compactor"):
        scene.note_since(name)
        try:
            result = table.compact(strategy=chance.choice(["full", "minor"]))
        except (CommitConflictError, NotFoundError) as error:
            note_error(scene, name, error)
        else:
            lost = [each.skipped for each in result.partitions if each.skipped and "another commit" in each.skipped]
            gone = [each.skipped for each in result.partitions if each.skipped and "is gone" in each.skipped]
            scene.note_event(
                name,
                compactions=len(result.snapshots),
                files_in=sum(each.files_in for each in result.partitions),
                files_out=sum(each.files_out for each in result.partitions),
                lost=len(lost) + len(gone),
            )
        time.sleep(chance.uniform(0.3, 1.2))


def compact_beside(scene: Scene, name: str, table: Table) -> None:
    """Compact as a stream does, while no other one does."""

    begun: list[int] = []

    def merge(task: CompactTask, ref: TableRef) -> MergedFiles:
        begun.append(now_millis())
        return merge_one(task, ref)

    scene.note_since(name)
    beside = BackgroundCompactor(table._ref, merge, commit_user=name, max_tasks=1, idle_seconds=0.1)
    beside.start()
    seen = CompactionState()
    done = 0
    while not scene.is_stopped("beside"):
        time.sleep(0.05)
        beside.wake()
        now, state = now_millis(), beside.state
        # One at a time is merged, and they land or are lost in their order. Others, as few as they are, count as going
        # on, which makes the note older than it had to be.
        done += state.committed_merges - seen.committed_merges + state.lost - seen.lost
        scene.note_since(name, min([now, *begun[done:]]))
        seen = note_state(scene, name, seen, state)
    beside.stop()
    note_state(scene, name, seen, beside.state)


def note_state(scene: Scene, name: str, old: CompactionState, new: CompactionState) -> CompactionState:
    if new.is_active and not old.is_active:
        scene.note_event(name, leases=1)
    if new.last_error is not None and new.last_error != old.last_error:
        scene.note_event(name, error="paused", text=new.last_error)
    keys = ("committed_merges", "lost", "files_in", "files_out")
    news = {key: getattr(new, key) - getattr(old, key) for key in keys}
    if any(news.values()):
        scene.note_event(name, **news)
    return new


def expire(scene: Scene, name: str, table: Table) -> None:
    """Let all snapshots go but a few, and those that a producer may still look for its batch in."""
    chance = random.Random()  # noqa: S311 - no secret
    while not scene.is_stopped("expirer"):
        scene.note_since(name)
        older_than = scene.horizon(age_ms=RETAIN_MS, names="producer-*")
        done = table.expire_snapshots(retain_min=RETAIN_SNAPSHOTS, older_than=older_than)
        if done.snapshot_ids:
            scene.note_event(name, expired=len(done.snapshot_ids), expired_files=done.data_files)
        time.sleep(chance.uniform(0.05, 0.3))


def remove_orphans(scene: Scene, name: str, table: Table) -> None:
    """Delete what killed processes left, and nothing that a living one is about to commit.

    What nobody uses and is younger than the oldest work that goes on may be somebody's. Each process therefore notes
    when it began what it is at, before its first file, and whoever begins later has younger files. So no age has to be
    guessed that is longer than any job takes on a busy machine.
    """
    chance = random.Random()  # noqa: S311 - no secret
    while not scene.is_stopped("remover"):
        scene.note_since(name)
        older_than = scene.horizon(age_ms=LEAST_AGE_MS)
        try:
            report = table.remove_orphan_files(older_than=older_than, dry_run=False, allow_recent=True)
        except (FormatError, StorageError) as error:
            # An expiration that was stopped, or that comes faster than one can look.
            if not any(words in str(error) for words in ("expiration was stopped", "committed faster")):
                raise
            note_error(scene, name, error)
        else:
            kinds = Counter(f"orphans_{each.kind}" for each in report.orphans)
            scene.note_event(name, removals=1, young=report.young, **kinds)
        time.sleep(chance.uniform(0.05, 0.4))


class _CaughtUpError(Exception):
    pass


def read(scene: Scene, name: str, table: Table) -> None:
    """Follow the table and write down what comes, snapshot by snapshot."""
    log = scene.root / "delivered"
    append_line(log, '{"restart": true}')
    scene.note_since(name)

    def begin(snapshot_id: int, phase: Phase) -> None:
        scene.note_since(name)
        append_line(log, f'{{"begin": {snapshot_id}, "phase": "{phase}"}}')

    def wait(seconds: float) -> None:
        scene.note_since(name)
        if scene.is_stopped("reader"):
            raise _CaughtUpError
        time.sleep(seconds)

    ref = table._ref.with_options({"consumer-id": CONSUMER})
    tail = LocalStreamReader(ref, MetadataStore(ref), on_snapshot=begin)
    batches: Generator[pa.RecordBatch] = tail.read(PollOptions(interval_ms=50, sleep=wait))
    try:
        for batch in batches:
            append_line(log, Contents.encode_rows(batch))
    except _CaughtUpError:
        pass


def scan(scene: Scene, name: str, table: Table) -> None:
    """Read the whole table again and again: what was acknowledged is there, and what was there stays where it was."""
    contents: Contents | None = None
    while not scene.is_stopped("scanner"):
        scene.note_since(name)
        acknowledged = {producer: scene.acknowledged(producer) for producer in PRODUCERS}
        try:
            rows = table.to_arrow()
        except NotFoundError as error:
            note_error(scene, name, error)  # the snapshot has expired meanwhile
        else:
            before, contents = contents, Contents.of(rows, scene.buckets)
            contents.check(acknowledged)
            if before is not None and scene.is_queue:
                contents.check_extends(before)
            scene.note_event(name, scans=1)
        time.sleep(0.3)


def note_error(scene: Scene, name: str, error: Exception) -> None:
    scene.note_event(name, error=type(error).__name__, text=str(error))


ROLES: Final[dict[str, Callable[[Scene, str, Table], None]]] = {
    "producer": produce,
    "compactor": compact,
    "beside": compact_beside,
    "expirer": expire,
    "remover": remove_orphans,
    "reader": read,
    "scanner": scan,
}

"""Traces of the model on the real code: each actor is a thread that stops before every call to storage."""

from __future__ import annotations

import itertools
import random
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import pyarrow as pa
from tests.model.calls import Verb
from tests.model.engine import Explorer
from tests.model.invariants import visible_rows
from tests.model.programs.leases import batch_user
from tests.model.values import CONSUMER, LEASE, QUERY, SNAPSHOTS, Holding, LeaseFile

import penstock
from penstock.errors import StorageError, TableStoreError
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.cleanup import commit_or_discard
from penstock.table.commit.delta import CommitRequest
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.lease import LEASE_MS, Lease, LeaseFiles, LeaseRecord, acquire
from penstock.table.process import this_process
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import Call, Operation, ProcessDiedError, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.model.scenarios import Scenario
    from tests.model.views import Step, System, View

    from penstock.io.file_io import FileIO

T = TypeVar("T")

Act: TypeAlias = "Callable[[penstock.Table, Actor], None]"
"""What an actor does."""

_NUMBERS: Final = itertools.count()
READER: Final = "reader"
_MILLIS: Final = itertools.count(step=10 * LEASE_MS)
"""So that every lease is over."""

_PATIENCE_SECONDS: Final = 20.0
_MOST_CALLS: Final = 400

_VERBS: Final = {
    Operation.READ: {Verb.READ, Verb.EXISTS},
    Operation.OPEN_INPUT: {Verb.READ},
    Operation.EXISTS: {Verb.EXISTS, Verb.READ},
    Operation.LIST: {Verb.LIST, Verb.STATUSES},
    Operation.WRITE: {Verb.WRITE},
    Operation.OPEN_OUTPUT: {Verb.WRITE},
    Operation.PUT_IF_ABSENT: {Verb.PUT, Verb.REPLACE, Verb.WRITE},
    Operation.DELETE: {Verb.DELETE},
}
_LOOSE: Final = ("manifest", "bucket-0")
"""Directories in which one file of the model stands for any number of real ones."""


_LOOKS: Final = {Verb.READ, Verb.EXISTS, Verb.LIST, Verb.STATUSES}


class DivergedError(Exception):
    """The code does not make a call that the model makes."""


class SteppedFileIO(RecordingFileIO):
    """Storage whose calls wait until they are let through; those to files that the model has not go through."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self._changed = threading.Condition()
        self._pending: Call | None = None
        self._fault: str | None = None
        self.is_over = False
        self.is_dead = False
        self.is_stepped = False

    def pending(self) -> Call | None:
        """Wait for the next call and return it; None when the actor came to its end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._pending is not None or self.is_over, _PATIENCE_SECONDS):
                raise DivergedError("the code neither calls the storage nor ends")
            return self._pending

    def let_through(self, fault: str | None = None) -> None:
        """Let the pending call happen, or fail."""
        with self._changed:
            self._fault, self._pending = fault, None
            self._changed.notify_all()

    def end(self) -> None:
        """Say that no more calls will come."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _call(self, operation: Operation, path: str, effect: Callable[[], T]) -> T:
        if self.is_dead:
            raise ProcessDiedError("stopped")
        if not self.is_stepped or _place(path) is None or operation not in _VERBS:
            return effect()
        with self._changed:
            self._pending = Call(operation, path)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._pending is None)
            fault = self._fault
        if fault == "crash":
            self.is_dead = True
            raise ProcessDiedError("stopped")
        self._note(operation, path)
        result = effect() if fault != "lost" else None
        if fault is not None:
            raise StorageError(f"{operation} {path}: no answer", True)  # noqa: FBT003 - positional, so that pickling works
        return result  # type: ignore[return-value] # there was no fault


@dataclass(slots=True)
class Actor:
    """A thread that runs what an actor of the model stands for.

    Attributes:
        acknowledged: rows whose append returned.
        seen: rows that it read; None for who reads nothing.
        delivered: rows that it got as a consumer.
        epochs: of the lease that it took.
        error: that it ended with.
    """

    file_io: SteppedFileIO
    thread: threading.Thread
    acknowledged: list[str] = field(default_factory=list)
    seen: list[str] | None = None
    delivered: list[str] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a trace.

    Attributes:
        rows: of the table, as a new handle reads them.
        extra_calls: calls that the code makes and the model does not.
    """

    rows: tuple[str, ...]
    acknowledged: tuple[str, ...]
    seen: tuple[tuple[str, ...], ...]
    delivered: tuple[str, ...]
    epochs: tuple[int, ...]
    errors: dict[str, BaseException]
    extra_calls: int
    table: penstock.Table


def rows_table(*rows: str) -> pa.Table:
    """Rows as they are appended."""
    return pa.table({"a": pa.array(rows, pa.string())})


def append(*rows: str) -> Act:
    """Append each row by itself."""

    def act(table: penstock.Table, actor: Actor) -> None:
        for row in rows:
            table.append(rows_table(row))
            actor.acknowledged.append(row)

    return act


def batch(row: str, after_id: int) -> Act:
    """Commit a batch that was looked for among snapshots up to ``after_id``."""

    def act(table: penstock.Table, actor: Actor) -> None:
        commit_or_discard(
            open_committer(table._ref),
            CommitRequest(
                commit_user=QUERY,
                kind=CommitKind.APPEND,
                commit_identifier=0,
                messages=write_arrow(table._ref, rows_table(row)),
                check_committed=True,
                committed_after_id=after_id,
            ),
        )
        actor.acknowledged.append(row)

    return act


def leased_batch(row: str, after_id: int, held: Holding) -> Act:
    """Commit a batch under a lease, as the sink of a stream does."""

    def act(table: penstock.Table, actor: Actor) -> None:
        lease = Lease(_lease_files(table), _record(held.lease), lambda: 0)
        committer = open_committer(table._ref)
        messages = write_arrow(table._ref, rows_table(row))
        if held.is_watched:
            lease.renew()
        request = CommitRequest(
            commit_user=batch_user(row),
            kind=CommitKind.APPEND,
            commit_identifier=0,
            messages=messages,
            check_committed=True,
            committed_after_id=after_id,
            check_alone=lease.check if held.is_trusted else None,
        )
        commit_or_discard(committer, request)
        actor.acknowledged.append(row)

    return act


def hold_lease(table: penstock.Table, actor: Actor) -> None:
    """Take the lease as if the holder's time were over, and renew it."""
    ref = table._ref
    lease = acquire(ref.file_io, ref.location, QUERY, clock=lambda: next(_MILLIS), sleep=lambda _: None)
    actor.epochs.append(lease.epoch)
    lease.renew()


def append_and_expire(row: str) -> Act:
    """Append, then expire."""

    def act(table: penstock.Table, actor: Actor) -> None:
        append(row)(table, actor)
        expire(table, actor)

    return act


def expire(table: penstock.Table, _actor: Actor) -> None:
    """Keep the newest snapshot alone."""
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=4_000_000_000_000)


def roll_back(target_id: int) -> Act:
    """Roll back to a snapshot that is not the latest."""

    def act(table: penstock.Table, actor: Actor) -> None:
        store = MetadataStore(table._ref)
        # What the code looks at for its plan, and in which order, is not modelled.
        actor.file_io.is_stepped = False
        plan = plan_rollback(store, snapshot_id=target_id)
        actor.file_io.is_stepped = True
        apply_rollback(store, plan)

    return act


def roll_back_as_planned(target_id: int, earlier_id: int) -> Act:
    """Plan a rollback, make another one, and go on with the plan."""

    def act(table: penstock.Table, actor: Actor) -> None:
        actor.file_io.is_stepped = False
        plan = plan_rollback(MetadataStore(table._ref), snapshot_id=target_id)
        actor.file_io.is_stepped = True
        roll_back(earlier_id)(table, actor)
        apply_rollback(MetadataStore(table._ref), plan)

    return act


def compact(table: penstock.Table, _actor: Actor) -> None:
    """Merge all files."""
    table.compact()


def consume(table: penstock.Table, actor: Actor) -> None:
    """Read what is new to the consumer."""
    actor.delivered = []
    for batch in table.follow(options={"consumer-id": READER}, once=True):
        actor.delivered += batch["a"].to_pylist()


def read_table(table: penstock.Table, actor: Actor) -> None:
    """Read all rows."""
    actor.seen = table.to_arrow()["a"].to_pylist()


class Stage:
    """A real table and actors on it, which take the steps that a trace says.

    Args:
        first: rows of the snapshots that are there, with the user that made each.
        lease: that is there.
        position: of a consumer that is there.
    """

    def __init__(
        self,
        first: Sequence[tuple[str, str]],
        acts: dict[str, Act],
        lease: LeaseFile | None = None,
        position: int | None = None,
    ) -> None:
        self._root = f"memory://model-{next(_NUMBERS)}"
        catalog = penstock.Catalog(self._root)
        catalog.create_database("db")
        table = catalog.create_table(
            "db.t", "a STRING", options={"write-only": "true", "commit.min-retry-wait": "1 ms"}
        )
        for row, user in first:
            request = CommitRequest(
                commit_user=user,
                kind=CommitKind.APPEND,
                messages=write_arrow(table._ref, rows_table(row)),
                commit_identifier=0,
            )
            commit_or_discard(open_committer(table._ref), request)
        if position is not None:
            table.maintenance.reset_consumer(READER, position)
        if lease is not None:
            _lease_files(table).write(_record(lease))
        self.actors = {name: self._start(act) for name, act in acts.items()}
        self._extra_calls = 0

    def follow(self, trace: Sequence[Step], *, is_strict: bool) -> Replayed:
        """Take the steps of a trace, then stop all actors where they are; if it is not strict, let them end.

        Raises:
            DivergedError: strict, and the code does not make a call of the trace.
        """
        try:
            for step in trace:
                self._take(step, is_strict=is_strict)
            for actor in () if is_strict else self.actors.values():
                while actor.file_io.pending() is not None:
                    actor.file_io.let_through()
            return self._result()
        finally:
            for actor in self.actors.values():
                while actor.file_io.pending() is not None:
                    actor.file_io.let_through("crash")
                actor.thread.join()

    def _start(self, act: Act) -> Actor:
        catalog = penstock.Catalog(self._root)
        file_io = SteppedFileIO(catalog._warehouse.file_io)
        catalog._warehouse = replace(catalog._warehouse, file_io=file_io)
        table = catalog.load_table("db.t")
        file_io.is_stepped = True

        def run() -> None:
            try:
                act(table, actor)
            except (TableStoreError, ProcessDiedError) as error:
                actor.error = error
            finally:
                file_io.end()

        actor = Actor(file_io, threading.Thread(target=run, daemon=True))
        actor.thread.start()
        return actor

    def _take(self, step: Step, *, is_strict: bool) -> None:
        """Let an actor make calls up to the one of the step."""
        file_io = self.actors[step.actor].file_io
        wanted = _place(step.op.path)
        if wanted is None:
            return
        if wanted[0] in _LOOSE or step.op.verb in _LOOKS:
            _let_loose_calls_through(file_io, step, is_one=wanted[0] not in _LOOSE)
            return
        for _ in range(_MOST_CALLS):
            call = file_io.pending()
            if call is None and is_strict:
                raise DivergedError(f"{step.actor} ended without {step.op}: {self.actors[step.actor].error!r}")
            if call is None:
                return
            if _is_like(call, step) or (step.fault == "crash" and not is_strict):
                file_io.let_through(step.fault)
                file_io.pending()
                return
            self._extra_calls += 1
            file_io.let_through()
        raise DivergedError(f"{step.actor} never came to {step.op}")

    def _result(self) -> Replayed:
        for actor in self.actors.values():
            actor.file_io.pending()
        table = penstock.Catalog(self._root).load_table("db.t")
        actors = self.actors.values()
        return Replayed(
            rows=tuple(table.to_arrow()["a"].to_pylist()),
            acknowledged=tuple(sorted(row for actor in actors for row in actor.acknowledged)),
            seen=tuple(tuple(actor.seen) for actor in actors if actor.seen is not None),
            delivered=tuple(row for actor in actors for row in actor.delivered),
            epochs=tuple(sorted(epoch for actor in actors for epoch in actor.epochs)),
            errors={name: actor.error for name, actor in self.actors.items() if actor.error is not None},
            extra_calls=self._extra_calls,
            table=table,
        )


def _lease_files(table: penstock.Table) -> LeaseFiles:
    return LeaseFiles(table._ref.file_io, table._ref.location, QUERY)


def _record(lease: LeaseFile) -> LeaseRecord:
    return LeaseRecord(
        epoch=lease.epoch,
        token=lease.token,
        process=this_process(),
        acquired_millis=0,
        expires_millis=1,
        ttl_ms=LEASE_MS,
    )


def random_trace(system: System, seed: int) -> tuple[tuple[Step, ...], View]:
    """Return a run of the model to its end, with the last state."""
    explorer, choice = Explorer(system), random.Random(seed)  # noqa: S311 - not for secrets
    state = explorer.start()
    steps = []
    while successors := explorer.successors(state):
        following, number, fault = choice.choice(successors)
        steps.append(explorer.step(state, number, fault))
        state = following
    return tuple(steps), explorer.view(state)


def _place(path: str) -> tuple[str, str] | None:
    """Return directory and name of a path that the model has too; None for others."""
    parts = path.rstrip("/").split("/")
    for directory in ("snapshot", "tag", "manifest", "bucket-0", "leases"):
        if directory in parts:
            return directory, "/".join(parts[parts.index(directory) + 1 :])
    return None


def _let_loose_calls_through(file_io: SteppedFileIO, step: Step, *, is_one: bool) -> None:
    """Let calls like a step through: any number of them to files; one look or none, where the code knows otherwise."""
    while step.op.verb not in _LOOKS and (call := file_io.pending()) is not None and _is_loose_look(call):
        file_io.let_through()  # what the code reads of such files before it changes them, the model may know
    while (call := file_io.pending()) is not None and _is_like(call, step):
        file_io.let_through(step.fault)
        file_io.pending()  # the call has happened, and what follows it
        if is_one:
            break


def _is_loose_look(call: Call) -> bool:
    there = _place(call.path)
    if there is None:
        return False
    return there[0] in _LOOSE and Verb.READ in _VERBS[call.operation]


def _is_like(call: Call, step: Step) -> bool:
    there, wanted = _place(call.path), _place(step.op.path)
    if there is None or wanted is None or step.op.verb not in _VERBS[call.operation] or there[0] != wanted[0]:
        return False
    return there[0] in _LOOSE or step.op.verb in {Verb.LIST, Verb.STATUSES} or there[1] == wanted[1]


_WITHOUT_ARGUMENTS: Final[dict[str, Act]] = {
    "hold_lease": hold_lease,
    "expire": expire,
    "compact": compact,
    "read_table": read_table,
}


def stage_of(scenario: Scenario) -> Stage:
    """Return a real table with the actors of a scenario, which neither replays streams from the start nor tags."""
    acts: dict[str, Act] = {}
    for name, program, *args in scenario.actors:
        match program.__name__, args:  # type: ignore[attr-defined]
            case "append", [rows]:
                acts[name] = append(*rows)  # type: ignore[misc]
            case "write_batch", [row, _, after_id]:
                acts[name] = batch(row, after_id)  # type: ignore[arg-type]
            case "leased_batches", [[row], _, after_id, held]:
                acts[name] = leased_batch(row, after_id, held)  # type: ignore[arg-type]
            case "append_and_expire", [row]:
                acts[name] = append_and_expire(row)  # type: ignore[arg-type]
            case "roll_back", [target_id, *_]:
                acts[name] = roll_back(target_id)  # type: ignore[arg-type]
            case "roll_back_as_planned", [target_id, earlier_id]:
                acts[name] = roll_back_as_planned(target_id, earlier_id)  # type: ignore[arg-type]
            case "consume", _:
                acts[name] = consume
            case other, _:
                acts[name] = _WITHOUT_ARGUMENTS[other]
    first = [value for path, value in scenario.content if path.startswith(SNAPSHOTS)]
    rows = visible_rows(dict(scenario.content)) or ()
    leases = [value for path, value in scenario.content if path.startswith(LEASE)]
    commits = [(row, snapshot.user) for row, snapshot in zip(rows, first, strict=True)]
    position = dict(scenario.content).get(CONSUMER)
    return Stage(commits, acts, leases[0] if leases else None, position)  # type: ignore[arg-type]

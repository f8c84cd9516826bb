"""What commits: appends, compactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.calls import (
    Become,
    Call,
    Note,
    delete,
    read,
    write,
)
from tests.model.guards import Guard
from tests.model.programs.commit import (
    CUT_SHORT,
    Conflict,
    Landed,
    Request,
    Unknown,
    attempt,
    commit,
    load_latest,
    search_commits,
)
from tests.model.values import (
    CHECKPOINT,
    CLAIMED_AT,
    DATA,
    QUERY,
    Acknowledged,
    Entry,
    Failed,
    File,
    Seen,
    Snapshot,
    in_order,
)

if TYPE_CHECKING:
    from tests.model.calls import Program
    from tests.model.guards import Guards


def append(guards: Guards, rows: tuple[str, ...]) -> Program:
    """``Table.append``, once for each row."""
    for row in rows:
        number = None
        if Guard.NUMBERS_AT_COMMIT not in guards:
            number = yield Call(draw_number, (guards,))
        path = f"{DATA}{row}"
        yield write(path, File())
        done = yield Call(commit, (guards, Request(f"{row}.1", (Entry(path, (row,), 0),), user=row, number=number)))
        match done:
            case Landed():
                yield Note(Acknowledged(row, done.snapshot))
            case Unknown() if Guard.FILES_KEPT_IF_UNKNOWN in guards:
                yield Note(Failed("unknown"))
            case _:
                yield delete(path)
                yield Note(Failed(done.why if isinstance(done, Conflict) else "unknown"))


def append_on(guards: Guards, row: str, base: Snapshot) -> Program:
    """Go on with an append that has read its base, whatever became of that meanwhile."""
    path = f"{DATA}{row}"
    yield write(path, File())
    done = yield Call(attempt, (guards, Request(f"{row}.1", (Entry(path, (row,), 0),), user=row), base))
    if isinstance(done, Landed):
        yield Note(Acknowledged(row, done.snapshot))
    elif isinstance(done, Conflict):
        yield delete(path)


def draw_number(guards: Guards) -> Program:
    """What a writer would number its rows with that looks before it writes, as the reference does."""
    base = yield Call(load_latest, (guards,))
    metadata = (yield read(base.metadata)) if base else None
    return len(rows_of(metadata.live)) if metadata else 0


def compact(guards: Guards, name: str) -> Program:
    """``Table.compact`` of all files to one."""
    base = yield Call(load_latest, (guards,))
    if base is None:
        return
    metadata = yield read(base.metadata)
    if metadata is None:
        yield Note(Failed("expired"))
        return
    inputs = tuple(sorted(metadata.live, key=lambda each: each.number))
    if len(inputs) < 2:
        return
    for entry in inputs:
        if (yield read(entry.path)) is None:
            yield Note(Failed("outrun"))
            return
    output = Entry(f"{DATA}{name}", tuple(row for entry in inputs for row in entry.rows), inputs[0].number)
    yield write(output.path, File())
    done = yield Call(commit, (guards, Request(f"{name}.1", (output,), inputs, user=name)))
    if isinstance(done, Conflict) or (isinstance(done, Unknown) and Guard.FILES_KEPT_IF_UNKNOWN not in guards):
        yield delete(output.path)
        yield Note(Failed("outrun"))


def rows_of(live: tuple[Entry, ...]) -> tuple[str, ...]:
    """Rows of the files, in no order."""
    return tuple(row for entry in live for row in entry.rows)


def stream(guards: Guards, row: str, job: str) -> Program:
    """``StreamCommitter``: one batch, by one of the drivers that run the query, one after the other or by mistake both.

    The checkpoint keeps the latest snapshot from before the batch was written.
    """
    latest = yield Call(load_latest, (guards,))
    latest_id = latest.id if latest else 0
    noted = yield read(f"{CHECKPOINT}{row}")
    after_id = CLAIMED_AT if noted is None else noted
    if Guard.REPLAY_FOUND in guards:
        found = yield Call(search_commits, (QUERY, latest_id, after_id))
        if isinstance(found, Snapshot):
            yield Note(Acknowledged(row, found))
            return
        if found is CUT_SHORT and Guard.CUT_SEARCH_REFUSED in guards:
            yield Note(Failed("nobody can tell whether it has landed"))
            return
    yield write(f"{CHECKPOINT}{row}", latest_id)
    return Become(write_batch, (guards, row, job, latest_id))


def write_batch(guards: Guards, row: str, job: str, after_id: int) -> Program:
    """Go on after the batch was not found among the snapshots up to ``after_id``."""
    path = f"{DATA}{row}-{job}"
    yield write(path, File())
    entry = Entry(path, (row,), 0)
    done = yield Call(commit, (guards, Request(f"{job}.1", (entry,), user=QUERY, is_checked=True, after_id=after_id)))
    if isinstance(done, Landed):
        if done.snapshot.uid.partition(".")[0] != job:
            yield delete(path)
        yield Note(Acknowledged(row, done.snapshot))
    elif isinstance(done, Conflict) or Guard.FILES_KEPT_IF_UNKNOWN not in guards:
        yield delete(path)


def read_table(guards: Guards) -> Program:
    """``Table.to_arrow``."""
    snapshot = yield Call(load_latest, (guards,))
    metadata = (yield read(snapshot.metadata)) if snapshot else None
    if snapshot and metadata is None:
        yield Note(Failed("expired"))
        return
    live = metadata.live if metadata else ()
    for entry in live:
        if (yield read(entry.path)) is None:
            yield Note(Failed("expired"))
            return
    yield Note(Seen(in_order(live)))

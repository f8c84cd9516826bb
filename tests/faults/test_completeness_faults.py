"""Tags and marks that commits make, with each call to storage for them failing, and with processes that die at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.table.actions.test_auto_tags import tags
from tests.unit.table.commit_tables import new_table, on
from tests.unit.table.mark_done.marking import DAY, FIRST, HOUR, SECOND, START, UTC_START, Job, marks

from penstock.io.memory import MemoryFileIO
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from penstock.table.ref import TableRef
    from penstock.testing.file_io import Call

OPTIONS = {
    "tag.automatic-creation": "watermark",
    "tag.num-retained-max": "2",
    "partition.time-interval": "1 d",
    "partition.idle-time-to-done": "15 min",
}


def seeded() -> TableRef:
    """Three days with tags, the first two partitions marked, and a late row in the first of them."""
    ref = new_table(OPTIONS)
    job = Job(ref)
    job.commit(FIRST, watermark=UTC_START)
    job.commit(SECOND, at=START + DAY + HOUR, watermark=UTC_START + DAY)
    job.commit(at=START + 2 * DAY + HOUR, watermark=UTC_START + 2 * DAY)
    job.commit(FIRST, at=START + 2 * DAY + 2 * HOUR)
    assert len(tags(ref)) == 2
    assert set(marks(ref)) == {FIRST, SECOND}
    return ref


def step(ref: TableRef) -> None:
    """A job that starts a day later: it makes a tag, drops one, and marks the first partition again."""
    Job(ref, START + 3 * DAY + HOUR).commit(watermark=UTC_START + 3 * DAY)


def end(ref: TableRef) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """The next day ends what was begun."""
    Job(ref, START + 4 * DAY + HOUR).commit(watermark=UTC_START + 4 * DAY)
    return tags(ref), marks(ref)


def test_stopped_at_any_call_the_next_job_ends_it(
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]], capsys: pytest.CaptureFixture[str]
) -> None:
    ref = seeded()
    clean = FailingFileIO(ref.file_io)
    step(on(ref, clean))
    hint = next(
        at for at, call in enumerate(clean.calls, 1) if call.operation is Operation.WRITE and "LATEST" in call.path
    )
    made, marked = end(ref)
    assert made == {"2026-01-03": 5, "2026-01-04": 6}
    assert marked[FIRST][0] < marked[FIRST][1] == START + 3 * DAY + HOUR
    count = len(clean.calls) - hint
    chosen = [(fault, at) for fault, at in faults_at(clean.calls) if at > hint]
    with capsys.disabled():
        print(f"\ntags and marks: {count} calls to storage, {len(chosen)} faults", end="")  # noqa: T201 - asked for by those who watch the number
    assert count >= 12
    for fault, at in chosen:
        ref = seeded()
        failing = FailingFileIO(ref.file_io, fault, at)
        died = False
        try:
            step(on(ref, failing))
        except ProcessDiedError:
            died = True
        assert died is (fault in {Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
        found, again = end(ref)
        assert found == made, (fault, clean.calls[at - 1])
        assert again.keys() == marked.keys()
        # The late row is marked, by this job or by the one after it; the other partition is not marked again.
        assert again[FIRST][0] == marked[FIRST][0]
        assert again[FIRST][1] in {START + 3 * DAY + HOUR, START + 4 * DAY + HOUR}, (fault, clean.calls[at - 1])
        assert again[SECOND] == marked[SECOND], (fault, clean.calls[at - 1])
        assert isinstance(ref.file_io, MemoryFileIO)

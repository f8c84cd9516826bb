"""When a commit tries again, and when the storage's refusal ends it."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit_tables import append, committer, new_table, rows

from penstock import Catalog
from penstock.errors import StorageError
from penstock.options import CommitOptions
from penstock.table.commit import retry as module
from penstock.table.commit.retry import CommitRetry

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.table.ref import TableRef


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableRef:
    """A table on the local disk of a machine with a directory of its own for locks."""
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    return catalog.create_table("d.t", "n BIGINT")._ref


def make(ref: TableRef, slept: list[float] | None = None, **options: str) -> CommitRetry:
    parsed = CommitOptions.parse({f"commit.{key.replace('_', '-')}": value for key, value in options.items()})
    return CommitRetry(ref=ref, options=parsed, sleep=(slept if slept is not None else []).append)


@pytest.mark.parametrize(("options", "attempts"), [({"max_retries": "0"}, 1), ({"max_retries": "3"}, 4)])
def test_a_count_ends_the_attempts(options: dict[str, str], attempts: int) -> None:
    with make(new_table(), **options) as retry:
        assert list(retry.attempts()) == list(range(attempts))


@pytest.mark.parametrize(("options", "seconds"), [({}, 120), ({"timeout": "5 s"}, 5)])
def test_without_a_count_time_ends_the_attempts(options: dict[str, str], seconds: int) -> None:
    now = [100.0]
    retry = replace(make(new_table(), **options), clock=lambda: now[0])
    with retry:
        for _ in islice(retry.attempts(), 1000):
            now[0] += 0.5
    assert retry.lost == seconds * 2


def test_waits_are_random_and_short_unless_an_option_allows_longer_ones() -> None:
    for options, longest in ({}, 0.25), ({"max_retry_wait": "4 s"}, 4.0):
        slept: list[float] = []
        with make(new_table(), slept, **options) as retry:
            for _ in islice(retry.attempts(), 200):
                retry.wait()
        assert len(slept) == 199, "nobody waits before the first attempt"
        assert max(slept[:1]) <= 0.01
        assert longest / 2 < max(slept) <= longest
        assert len(set(slept)) > 190


def test_who_lost_a_race_waits_for_its_turn_on_this_machine(local: TableRef) -> None:
    order: list[str] = []
    with make(local) as first, make(local) as second:
        first.lost = second.lost = 1
        first.wait()
        thread = threading.Thread(target=lambda: (second.wait(), order.append("second")))
        thread.start()
        thread.join(0.2)
        order.append("first")
        first.release_lock()
        thread.join(30)
    assert order == ["first", "second"]


def test_a_stopped_holder_of_the_lock_delays_others_briefly(local: TableRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_LOCK_WAIT_SECONDS", 0.1)
    with make(local) as stopped, make(local) as other:
        stopped.lost = other.lost = 1
        stopped.wait()
        other.wait()


def test_a_directory_for_locks_that_others_can_write_is_not_used(local: TableRef, tmp_path: Path) -> None:
    for folder in tmp_path.glob("penstock-*"):
        folder.rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"penstock-{module.os.getuid()}").symlink_to(elsewhere)
    with make(local) as retry:
        retry.lost = 1
        retry.wait()
    assert list(elsewhere.iterdir()) == []


def test_a_snapshot_that_the_storage_refuses_is_no_unknown_outcome() -> None:
    class Full:
        """A disk without room for another snapshot."""

        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def put_if_absent(self, path: str, _data: bytes) -> bool:
            raise StorageError(f"cannot write {path}: No space left on device")

    ref = new_table()
    slept: list[float] = []
    full = replace(ref, file_io=Full(ref.file_io))
    writer = committer(full)
    writer.sleep = slept.append
    with pytest.raises(StorageError, match="No space left"):
        writer.commit(append(rows(1)))
    assert slept == []
    assert not writer.may_be_committed
    assert ref.file_io.list(ref.layout.manifest_directory) == (), "what was written for it is gone"

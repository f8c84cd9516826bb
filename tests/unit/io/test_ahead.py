"""Requests that are sent ahead: which calls receive their answers, and when answers are dropped."""

from __future__ import annotations

import os
import threading
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from penstock import NotFoundError
from penstock.io import ahead as ahead_module
from penstock.io.memory import MemoryFileIO
from penstock.testing.requests import counted_requests, memory_store

if TYPE_CHECKING:
    from penstock.io.object_store.file_io import ObjectFileIO


@pytest.fixture
def store() -> ObjectFileIO:
    return memory_store(f"ahead-{uuid.uuid4()}")


def path_of(store: ObjectFileIO, name: str) -> str:
    return f"{store.settings.address.root}/dir/{name}"


def test_an_answer_is_used_once(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with counted_requests(store) as counts, store.prefetch() as ahead:
        ahead.read(path)
        ahead.read(path)
        assert (store.read(path), counts.total) == (b"1", 1)
        assert (store.read(path), counts.total) == (b"1", 2)


def test_a_forked_process_asks_by_itself(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with counted_requests(store, delay_seconds=0.5), store.prefetch() as ahead:
        ahead.read(path)
        process_id = os.fork()
        if process_id == 0:  # no test may go on here
            is_open = True
            try:
                is_open = ahead_module.take_answer(store, "read", path) is not None
            finally:
                os._exit(1 if is_open else 0)
        _, status = os.waitpid(process_id, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert store.read(path) == b"1"


def test_answers_are_dropped_when_this_thread_changes_anything(store: ObjectFileIO) -> None:
    path, other = path_of(store, "a"), path_of(store, "b")
    store.write(path, b"1")
    changes = (
        lambda: store.write(path, b"2"),
        lambda: store.put_if_absent(path_of(store, str(uuid.uuid4())), b""),
        lambda: store.delete(other),
        lambda: store.delete_many([other]),
    )
    for change in changes:
        with store.prefetch() as ahead:
            with counted_requests(store) as sent:
                ahead.read(path)
                ahead.list(path_of(store, "").rstrip("/"))
                while sent.total < 2:  # a request that is sent later would count below
                    time.sleep(0.001)
            change()
            with counted_requests(store) as counts:
                store.read(path)
                store.list(path_of(store, "").rstrip("/"))
            assert counts.total == 2


def test_old_answers_are_not_used(store: ObjectFileIO, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with store.prefetch() as ahead:
        ahead.read(path)
        assert ahead.has(path)
        monkeypatch.setattr(ahead_module, "_LONGEST_SECONDS", -1.0)
        assert not ahead.has(path)
        MemoryFileIO("elsewhere").write(path, b"other")
        with counted_requests(store) as counts:
            assert store.read(path) == b"1"
        assert counts.total == 1


def test_a_missing_file_is_an_answer_too(store: ObjectFileIO) -> None:
    path, there = path_of(store, "none"), path_of(store, "there")
    store.write(there, b"")
    with store.prefetch() as ahead:
        ahead.read(path)
        with pytest.raises(NotFoundError):
            store.read(path)
        ahead.read(path)
        ahead.read(there)
        assert not store.has_file(path)
        assert store.has_file(there)


def test_an_answer_may_request_more(store: ObjectFileIO) -> None:
    names = [path_of(store, "first"), path_of(store, "second")]
    store.write(names[0], names[1].encode())
    store.write(names[1], b"end")
    with counted_requests(store) as counts, store.prefetch() as ahead:
        ahead.read(names[0], then=lambda data: ahead.read(data.decode()))
        assert store.read(store.read(names[0]).decode()) == b"end"
        assert (counts.total, counts.serial) == (2, 2)


def test_an_inner_block_is_part_of_the_outer_one_and_other_threads_have_their_own(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with store.prefetch() as outer:
        with store.prefetch() as inner:
            assert inner is outer
            inner.read(path)
        seen: list[bool] = []

        def look() -> None:
            with store.prefetch() as other:
                seen.append(other.has(path))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert (seen, outer.has(path)) == ([False], True)
        outer.drop(path[:-1])
        assert not outer.has(path)


def test_other_storages_send_nothing_ahead() -> None:
    file_io = MemoryFileIO(str(uuid.uuid4()))
    with file_io.prefetch() as ahead:
        ahead.read("/none")
        ahead.list("/none")
        ahead.drop("")
        assert not ahead.has("/none")

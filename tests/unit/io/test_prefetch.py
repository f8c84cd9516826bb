"""Requests that are sent ahead: which calls receive their answers, and when answers are dropped."""

from __future__ import annotations

import os
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from tests.support.counted_requests import counted_requests, memory_store

from penstock import NotFoundError
from penstock.io import prefetch
from penstock.io.branch import BranchFileIO
from penstock.io.memory import MemoryFileIO
from penstock.io.prefetch import PrefetchedFileIO

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
        ahead.request_read(path)
        ahead.request_read(path)
        assert (ahead.read(path), counts.total) == (b"1", 1)
        assert (ahead.read(path), counts.total) == (b"1", 2)


def test_a_forked_process_asks_by_itself(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with counted_requests(store, delay_seconds=0.5), store.prefetch() as ahead:
        ahead.request_read(path)
        process_id = os.fork()
        if process_id == 0:  # no test may go on here
            is_open = True
            try:
                assert isinstance(ahead, PrefetchedFileIO)
                is_open = ahead._take("read", path) is not None
            finally:
                os._exit(1 if is_open else 0)
        _, status = os.waitpid(process_id, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert ahead.read(path) == b"1"


def test_only_reads_through_the_view_get_its_answers(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with store.prefetch() as ahead:
        ahead.request_read(path)
        while not ahead._answers["read", path][2].done():
            time.sleep(0.001)
        store.write(path, b"2")
        assert store.read(path) == b"2"
        assert ahead.read(path) == b"1"
        assert ahead.read(path) == b"2"


def test_answers_are_dropped_when_anything_is_changed_through_the_view(store: ObjectFileIO) -> None:
    path, other = path_of(store, "a"), path_of(store, "b")
    store.write(path, b"1")
    changes = (
        lambda ahead: ahead.write(path, b"2"),
        lambda ahead: ahead.put_if_absent(path_of(store, str(uuid.uuid4())), b""),
        lambda ahead: ahead.delete(other),
        lambda ahead: ahead.delete_many([other]),
        lambda ahead: ahead.rename_file(path, path_of(store, "renamed")) or ahead.write(path, b"3"),
    )
    for change in changes:
        with store.prefetch() as ahead:
            with counted_requests(store) as sent:
                ahead.request_read(path)
                ahead.request_list(path_of(store, "").rstrip("/"))
                while sent.total < 2:  # a request that is sent later would count below
                    time.sleep(0.001)
            change(ahead)
            with counted_requests(store) as counts:
                ahead.read(path)
                ahead.list(path_of(store, "").rstrip("/"))
            assert counts.total == 2


def test_old_answers_are_not_used(store: ObjectFileIO, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with store.prefetch() as ahead:
        ahead.request_read(path)
        assert ahead.is_requested(path)
        monkeypatch.setattr(prefetch, "_MAX_AGE_SECONDS", -1.0)
        assert not ahead.is_requested(path)
        MemoryFileIO("elsewhere").write(path, b"other")
        with counted_requests(store) as counts:
            assert ahead.read(path) == b"1"
        assert counts.total == 1


def test_a_missing_file_is_an_answer_too(store: ObjectFileIO) -> None:
    path, there = path_of(store, "none"), path_of(store, "there")
    store.write(there, b"")
    with store.prefetch() as ahead:
        ahead.request_read(path)
        with pytest.raises(NotFoundError):
            ahead.read(path)
        ahead.request_read(path)
        ahead.request_read(there)
        assert not ahead.has_file(path)
        assert ahead.has_file(there)


def test_an_answer_may_request_more(store: ObjectFileIO) -> None:
    names = [path_of(store, "first"), path_of(store, "second")]
    store.write(names[0], names[1].encode())
    store.write(names[1], b"end")
    with counted_requests(store) as counts, store.prefetch() as ahead:
        ahead.request_read(names[0], then=lambda data: ahead.request_read(data.decode()))
        assert ahead.read(ahead.read(names[0]).decode()) == b"end"
        assert (counts.total, counts.serial) == (2, 2)


def test_a_block_of_a_view_is_part_of_it_and_other_blocks_have_their_own(store: ObjectFileIO) -> None:
    path = path_of(store, "a")
    store.write(path, b"1")
    with store.prefetch() as outer:
        with outer.prefetch() as inner:
            assert inner is outer
            inner.request_read(path)
        with store.prefetch() as other:
            assert not other.is_requested(path)
        assert outer.is_requested(path)
        outer.drop_requested(path[:-1])
        assert not outer.is_requested(path)


def test_a_view_of_a_branch_requests_the_files_of_the_branch(store: ObjectFileIO) -> None:
    location, root = path_of(store, "t"), path_of(store, "t/branch/branch-b")
    store.write(f"{root}/schema/schema-0", b"of the branch")
    branch = BranchFileIO(inner=store, branch="b", location=location, root=root)
    with counted_requests(store) as counts, branch.prefetch() as ahead:
        ahead.request_read(f"{location}/schema/schema-0")
        assert ahead.is_requested(f"{location}/schema/schema-0")
        assert ahead.read(f"{location}/schema/schema-0") == b"of the branch"
        assert (counts.total, ahead.branch_name) == (1, "b")


def test_other_storages_send_nothing_ahead() -> None:
    file_io = MemoryFileIO(str(uuid.uuid4()))
    with file_io.prefetch() as ahead:
        assert ahead is file_io
        ahead.request_read("/none")
        ahead.request_list("/none")
        ahead.drop_requested("")
        assert not ahead.is_requested("/none")

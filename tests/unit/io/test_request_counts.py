"""How requests that wait for one another are counted."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.support.counted_requests import counted_requests, memory_store


def test_calls_in_a_row_wait_for_one_another_and_those_of_threads_do_not() -> None:
    store = memory_store(f"counts-{uuid.uuid4()}")
    paths = [f"{store.settings.address.root}/{number}" for number in range(8)]
    with counted_requests(store) as counts:
        for path in paths:
            store.write(path, b"")
    assert (counts.total, counts.serial) == (8, 8)
    with counted_requests(store) as counts, ThreadPoolExecutor(8) as pool:
        list(pool.map(store.read, paths))
    assert (counts.total, counts.serial) == (8, 1)
    assert counts.names[0].startswith("get ")


def test_a_pool_with_fewer_threads_works_in_rounds() -> None:
    store = memory_store(f"counts-{uuid.uuid4()}")
    path = f"{store.settings.address.root}/a"
    store.write(path, b"")
    all_threads = threading.Barrier(3)

    def read(path: str) -> bytes:
        all_threads.wait()  # so that no thread takes more than its share
        return store.read(path)

    with counted_requests(store) as counts, ThreadPoolExecutor(3) as pool:
        list(pool.map(read, [path] * 9))
    assert counts.serial == 3


def test_who_waits_for_a_thread_goes_on_after_it() -> None:
    store = memory_store(f"counts-{uuid.uuid4()}")
    path = f"{store.settings.address.root}/a"
    store.write(path, b"")
    with counted_requests(store) as counts:
        store.read(path)
        with ThreadPoolExecutor(2) as pool:
            future = pool.submit(store.read, path)
            store.read(path)
            assert counts.serial == 2
            future.result()
        store.read(path)
    assert counts.serial == 3

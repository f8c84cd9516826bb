"""Create an object only if it does not exist, with one winner even when answers are lost.

The library's own retries are off: a retry after a lost answer would find this writer's object and report it as an
existing one. So each attempt is one request, and the content at the path is compared with the bytes to put.

Commits rely on the store's guarantee that of several conditional puts of one name only one succeeds. Some servers
accept the condition but ignore it; others check it and put in two separate steps, so that two writers could both
believe that they have committed. So before its first conditional put a process tests the store with an object name of
its own. AWS and Azure get a sequential test; other servers also get a test with concurrent puts.
"""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Barrier, Lock
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.io.object_store.client import StoreFailureError, Tries, content_of

if TYPE_CHECKING:
    from penstock.io.object_store.client import StoreClient
    from penstock.io.object_store.settings import StoreSettings


def put_new(client: StoreClient, key: str, data: bytes) -> bool:
    """Create an object if it does not exist.

    Returns:
        Whether the object at the path is from this call.

    Raises:
        StoreFailureError: the store refused; or it did not answer, and the object may exist now or later.
    """
    tries = Tries(client)
    while True:
        try:
            put_once(client, key, data)
        except StoreFailureError as error:
            if error.failure.is_there_already:
                return _is_ours(client, key, data)
            if not (error.failure.is_retryable or error.failure.is_conflict):
                raise
            if not tries.wait_for_next():
                return _is_ours_after(client, key, data, error)
        else:
            return True


def put_once(client: StoreClient, key: str, data: bytes) -> None:
    """Send one conditional put. Raises ``StoreFailureError``."""
    client.call(lambda library, store: library.put(store, key, data, mode="create", use_multipart=False), once=True)


def _is_ours(client: StoreClient, key: str, data: bytes) -> bool:
    """Whether the object holds our bytes: then our put succeeded but its answer was lost."""
    try:
        return read_whole(client, key) == data
    except StoreFailureError as error:
        if error.failure.is_missing:
            return False  # the object of another writer, deleted meanwhile
        raise


def _is_ours_after(client: StoreClient, key: str, data: bytes, error: StoreFailureError) -> bool:
    """Like ``_is_ours``, after no attempt was answered; raises the error if there is no object, as ours may follow."""
    try:
        return read_whole(client, key) == data
    except StoreFailureError:
        raise error from None


def read_whole(client: StoreClient, key: str) -> bytes:
    """Return an object's content. Raises ``StoreFailureError``."""
    return client.call(lambda library, store: content_of(library.get(store, key)))


PREFIX: Final = ".penstock-probe-"
"""Name prefix of the temporary objects of this test."""

_CURE: Final = "Use a store or a version of it that has conditional puts; reading tables works with any"
_NAMES: Final = 8
_PUTS: Final = 8


@dataclass(slots=True)
class _Verdicts:
    """Stores that passed the test, in this process or in the process it was forked from."""

    safe: set[StoreSettings] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)


_VERDICTS: Final = _Verdicts()


def _renew_lock() -> None:
    # Another thread of the parent process may have held the lock at the fork.
    _VERDICTS.lock = Lock()


os.register_at_fork(after_in_child=_renew_lock)


def check_conditional_puts(client: StoreClient, directory: str) -> None:
    """Test the store, once per process.

    Args:
        directory: key under which the test objects are put, and deleted again.

    Raises:
        UnsupportedFeatureError: two puts of one name succeeded, or the store has no conditional puts.
        StoreFailureError: the store failed.
    """
    with _VERDICTS.lock:
        if client.settings in _VERDICTS.safe:
            return
    base = f"{directory}/{PREFIX}{uuid.uuid4()}".lstrip("/")
    written: list[str] = []
    try:
        most = _put_twice(client, base, written)
        if most < 2 and not client.settings.is_cloud:
            most = max(most, _race(client, base, written))
    except StoreFailureError as error:
        if not error.failure.is_not_implemented:
            raise
        raise UnsupportedFeatureError(
            f"{client.settings.address.root} cannot hold tables: the store refuses conditional puts (If-None-Match: *, "
            f"{error.failure.status}); nothing was written. {_CURE}"
        ) from None
    finally:
        if written:
            with suppress(StoreFailureError):  # listings leave remaining test objects out
                client.call(lambda library, store: library.delete(store, sorted(set(written))))
    if most > 1:
        raise UnsupportedFeatureError(
            f"{client.settings.address.root} cannot hold tables: {most} conditional puts (If-None-Match: *) of one "
            "object succeeded where one may, so two writers could both believe that they have committed; nothing was "
            f"written. {_CURE}"
        )
    with _VERDICTS.lock:
        _VERDICTS.safe.add(client.settings)


def _put_twice(client: StoreClient, base: str, written: list[str]) -> int:
    """Put a name twice in a row, a new name after a failed request; return the number of successful puts."""
    tries = Tries(client)
    for number in count():
        try:
            return sum(_put(client, f"{base}-0-{number}", written) for _ in range(2))
        except StoreFailureError as error:
            if not error.failure.is_retryable or not tries.wait_for_next():
                raise
    raise AssertionError("unreachable: the numbers do not end")


def _race(client: StoreClient, base: str, written: list[str]) -> int:
    """Put several names concurrently; return the largest number of successful puts of one name."""
    barrier = Barrier(_PUTS)

    def contend(_number: int) -> list[bool]:
        barrier.wait(timeout=client.settings.timeout_ms / 1000)
        return [_put_or_failed(client, f"{base}-{name}", written) for name in range(1, _NAMES + 1)]

    with ThreadPoolExecutor(_PUTS, thread_name_prefix="penstock-probe") as pool:
        outcomes = list(pool.map(contend, range(_PUTS)))
    winners: list[int] = [sum(each) for each in zip(*outcomes, strict=True)]
    return max(winners)


def _put(client: StoreClient, key: str, written: list[str]) -> bool:
    try:
        put_once(client, key, uuid.uuid4().bytes)
    except StoreFailureError as error:
        if error.failure.is_there_already or error.failure.is_conflict:
            return False
        written.append(key)  # the put may have succeeded
        raise
    written.append(key)
    return True


def _put_or_failed(client: StoreClient, key: str, written: list[str]) -> bool:
    """Put an object; a put that was throttled, or whose answer was lost, counts as not successful."""
    try:
        return _put(client, key, written)
    except StoreFailureError as error:
        if error.failure.is_retryable:
            return False
        raise

"""Create an object only if it does not exist, with one winner even when answers are lost.

The library's own retries are off: a retry after a lost answer would find this writer's object and report it as an
existing one. So each attempt is one request, and the content at the path is compared with the bytes to put.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final

from penstock.io.object_store.client import StoreFailureError

if TYPE_CHECKING:
    from penstock.io.object_store.client import StoreClient

_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 10.0
_FIRST_TRIES: Final = 3


def put_new(client: StoreClient, key: str, data: bytes) -> bool:
    """Create an object if it does not exist.

    Returns:
        Whether the object at the path is from this call.

    Raises:
        StoreFailureError: the store refused; or it did not answer, and the object may exist now or later.
    """
    tries = (
        client.settings.max_retries + 1 if client.has_answered else min(client.settings.max_retries + 1, _FIRST_TRIES)
    )
    deadline = time.monotonic() + client.settings.retry_timeout_ms / 1000
    wait = _FIRST_WAIT_SECONDS
    for tried in range(1, tries + 1):
        try:
            put_once(client, key, data)
        except StoreFailureError as error:
            if error.failure.is_there_already:
                return _is_ours(client, key, data)
            if not (error.failure.is_retryable or error.failure.is_conflict):
                raise
            if tried == tries or time.monotonic() >= deadline:
                return _is_ours_after(client, key, data, error)
        else:
            return True
        time.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - not for secrets
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
    raise AssertionError("unreachable: the last try returns or raises")


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
    return client.call(lambda library, store: bytes(library.get(store, key).bytes()))

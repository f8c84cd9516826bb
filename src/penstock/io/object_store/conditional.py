"""Creating an object where there is none, with one winner, whatever answers get lost.

The library's own repetitions are off: repeated after a lost answer, a put finds its own object and would report
somebody else's. So each try is one request, and what is at the path is compared with what was to be put.
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
    """Create an object.

    Returns:
        Whether the object at the path is ours.

    Raises:
        StoreFailureError: the store refused; or it did not answer, and whether the object is or will be there is open.
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
    """Whether the object has our bytes: then an answer was lost, here or on the way."""
    try:
        return read_whole(client, key) == data
    except StoreFailureError as error:
        if error.failure.is_missing:
            return False  # another's, and deleted since
        raise


def _is_ours_after(client: StoreClient, key: str, data: bytes, error: StoreFailureError) -> bool:
    """The same where no try was answered; raises the error where nothing is there, since ours may still come."""
    try:
        return read_whole(client, key) == data
    except StoreFailureError:
        raise error from None


def read_whole(client: StoreClient, key: str) -> bytes:
    """Return an object's content. Raises ``StoreFailureError``."""
    return client.call(lambda library, store: bytes(library.get(store, key).bytes()))

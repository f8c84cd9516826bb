"""Create an object only if it does not exist, with one winner even when answers are lost.

The library's own retries are off: a retry after a lost answer would find this writer's object and report it as an
existing one. So each attempt is one request, and the content at the path is compared with the bytes to put.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.io.object_store.client import StoreFailureError, Tries, content_of

if TYPE_CHECKING:
    from penstock.io.object_store.client import StoreClient


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

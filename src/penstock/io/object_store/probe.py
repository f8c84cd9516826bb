"""Whether a store keeps the promise that commits rest on: of several conditional puts of one name, one lands.

Some servers take the condition and ignore it, others check it and put in two steps. On such a store two writers would
both believe that they have committed. So before its first conditional put a process tries, on a name of its own. What
AWS and Azure promise is tried once in sequence; servers of other makers are also put to a race.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Barrier, Lock
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.io.object_store.client import StoreFailureError
from penstock.io.object_store.conditional import put_once

if TYPE_CHECKING:
    from penstock.io.object_store.client import StoreClient
    from penstock.io.object_store.settings import StoreSettings

PREFIX: Final = ".penstock-probe-"
"""Of the names of objects that exist for a moment only."""

_NAMES: Final = 8
_PUTS: Final = 8


@dataclass(slots=True)
class _Verdicts:
    """Stores that keep the promise, as far as this process, or the one that it was forked from, has seen."""

    safe: set[StoreSettings] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)


_VERDICTS: Final = _Verdicts()


def check_conditional_puts(client: StoreClient, directory: str) -> None:
    """Try the store once in this process.

    Args:
        directory: key under which the objects of the trial are put, and deleted again.

    Raises:
        UnsupportedFeatureError: two puts of one name landed.
        StoreFailureError: the store failed.
    """
    with _VERDICTS.lock:
        if client.settings in _VERDICTS.safe:
            return
    base = f"{directory}/{PREFIX}{uuid.uuid4()}".lstrip("/")
    landed: list[str] = []
    try:
        most = sum(_put(client, f"{base}-0", landed) for _ in range(2))
        if most < 2 and not client.settings.is_cloud:
            most = max(most, _race(client, base, landed))
    finally:
        if landed:
            with suppress(StoreFailureError):  # listings leave them out
                client.call(lambda library, store: library.delete(store, sorted(set(landed))))
    if most > 1:
        raise UnsupportedFeatureError(
            f"{client.settings.address.root} cannot hold tables: {most} conditional puts (If-None-Match: *) of one "
            "object succeeded where one may, so two writers could both believe that they have committed; nothing was "
            "written. Use a store or a version of it that has conditional puts; reading tables works with any"
        )
    with _VERDICTS.lock:
        _VERDICTS.safe.add(client.settings)


def _race(client: StoreClient, base: str, landed: list[str]) -> int:
    """Return the largest number of puts of one name that landed, of several at once."""
    barrier = Barrier(_PUTS)

    def contend(_number: int) -> list[bool]:
        barrier.wait(timeout=client.settings.timeout_ms / 1000)
        return [_put_or_throttled(client, f"{base}-{name}", landed) for name in range(1, _NAMES + 1)]

    with ThreadPoolExecutor(_PUTS, thread_name_prefix="penstock-probe") as pool:
        outcomes = list(pool.map(contend, range(_PUTS)))
    winners: list[int] = [sum(each) for each in zip(*outcomes, strict=True)]
    return max(winners)


def _put(client: StoreClient, key: str, landed: list[str]) -> bool:
    try:
        put_once(client, key, uuid.uuid4().bytes)
    except StoreFailureError as error:
        if error.failure.is_there_already or error.failure.is_conflict:
            return False
        landed.append(key)  # perhaps
        raise
    landed.append(key)
    return True


def _put_or_throttled(client: StoreClient, key: str, landed: list[str]) -> bool:
    """Count a put for which the store has no time as one that did not land."""
    try:
        return _put(client, key, landed)
    except StoreFailureError as error:
        if error.failure.status is not None and error.failure.is_retryable:
            return False
        raise

"""The object store clients of this process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.io.object_store.address import StoreKind
from penstock.io.object_store.failures import failure_of
from penstock.io.object_store.library import load_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.object_store.failures import Failure
    from penstock.io.object_store.settings import StoreSettings

T = TypeVar("T")

_CLASSES: Final = {StoreKind.S3: "S3Store", StoreKind.AZURE: "AzureStore", StoreKind.GCS: "GCSStore"}
# A wrong endpoint is reported within ten seconds; a store that has answered before is retried as long as the options
# say.
_FIRST_TIMEOUT_SECONDS: Final = 5.0
_FIRST_RETRY_SECONDS: Final = 4.0
_FIRST_RETRIES: Final = 3


class StoreFailureError(Exception):
    """An error of the library, as a ``Failure`` value; it never leaves this package."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(slots=True)
class StoreClient:
    """A client for one bucket in this process. Thread-safe.

    Attributes:
        library: the module whose functions take the store objects.
        has_answered: the store has answered at least one request, even with a rejection.
    """

    settings: StoreSettings
    library: Any
    has_answered: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    _stores: dict[str, Any] = field(default_factory=dict)

    def call(self, function: Callable[[Any, Any], T], *, once: bool = False) -> T:
        """Call a function with the library and a store.

        Args:
            once: the library does not retry requests.

        Raises:
            StoreFailureError: the request failed.
        """
        store = self._store("once" if once else "patient" if self.has_answered else "first")
        try:
            result = function(self.library, store)
        except (OSError, ValueError, self.library.exceptions.BaseError) as error:
            failure = failure_of(error)
            self.has_answered = self.has_answered or (failure.status is not None and not failure.is_retryable)
            # No cause: its text contains URLs, which may contain signatures.
            raise StoreFailureError(failure) from None
        self.has_answered = True
        return result

    def preset(self, store: Any) -> None:  # noqa: ANN401 - see ``_store``
        """Use a store object of the library for all requests, such as one in memory for tests."""
        with self.lock:
            self._stores = dict.fromkeys(("once", "patient", "first"), store)

    def _store(self, name: str) -> Any:  # noqa: ANN401 - a class of the library, of which a process may have two
        with self.lock:
            if name not in self._stores:
                self._stores[name] = self._open(name)
            return self._stores[name]

    def _open(self, name: str) -> Any:  # noqa: ANN401 - see above
        settings = self.settings
        client = settings.client_options()
        retries, seconds = settings.max_retries, settings.retry_timeout_ms / 1000
        if name == "once":
            retries = 0
        elif name == "first":
            retries, seconds = min(retries, _FIRST_RETRIES), min(seconds, _FIRST_RETRY_SECONDS)
            client["timeout"] = min(client["timeout"], timedelta(seconds=_FIRST_TIMEOUT_SECONDS))
        opened = getattr(self.library._store, _CLASSES[settings.address.kind])  # noqa: SLF001 - its compiled half
        try:
            return opened(
                settings.address.bucket,
                config=dict(settings.config),
                client_options=client,
                retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=seconds)},
            )
        except (OSError, ValueError, self.library.exceptions.BaseError) as error:
            raise StoreFailureError(failure_of(error)) from None


@dataclass(slots=True)
class _Clients:
    """The clients of one process."""

    process_id: int = 0
    by_settings: dict[StoreSettings, StoreClient] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_CLIENTS: Final = _Clients()


def client_of(settings: StoreSettings) -> StoreClient:
    """Return this process's client; a forked process creates its own clients."""
    with _CLIENTS.lock:
        if _CLIENTS.process_id != os.getpid():
            _CLIENTS.process_id, _CLIENTS.by_settings = os.getpid(), {}
        client = _CLIENTS.by_settings.get(settings)
        if client is None:
            client = _CLIENTS.by_settings[settings] = StoreClient(settings, load_library())
        return client


def _renew_lock() -> None:
    # Another thread of the parent process may have held the lock at the fork.
    _CLIENTS.lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)

"""The object store clients of this process, and the library (obstore) that they use.

The library's threads belong to the process that first used it: in a process forked from that one every call would
block forever. A forked process therefore loads a copy of the library's file, which starts its own threads.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from penstock.errors import UnsupportedFeatureError
from penstock.io.object_store.address import StoreKind
from penstock.io.object_store.credentials import credential_provider
from penstock.io.object_store.failures import CUT_OFF, NOT_OPENED, PANIC, Failure, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from penstock.io.object_store.credentials import FetchedKeys
    from penstock.io.object_store.settings import StoreSettings

_NAME: Final = "obstore._obstore"


@dataclass(slots=True)
class _Loaded:
    """The loaded library; a forked process inherits its parent's value."""

    process_id: int | None = None
    module: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_LOADED: Final = _Loaded()


def load_library() -> Any:  # noqa: ANN401 - a module that no type describes
    """Return the library's module; it has the store classes in ``_store`` and the errors in ``exceptions``."""
    with _LOADED.lock:
        if _LOADED.process_id is None:
            _LOADED.module = importlib.import_module(_NAME)
        elif _LOADED.process_id != os.getpid():
            _LOADED.module = _load_copy()
        _LOADED.process_id = os.getpid()
        return _LOADED.module


def _load_copy() -> ModuleType:
    """Load a copy of the library's file; the system treats another file as another library.

    Raises:
        UnsupportedFeatureError: no place for the copy permits it.
    """
    origin = Path(importlib.import_module("obstore").__path__[0]) / Path(sys.modules[_NAME].__file__ or "").name
    # The directory of temporary files may be full, or of a file system from which nothing is executed.
    places: tuple[Callable[[], Any], ...] = (
        partial(tempfile.NamedTemporaryFile, suffix=origin.suffix),
        _memory_file,
    )
    for new_file in places:
        with suppress(OSError, ImportError), new_file() as copy:
            with origin.open("rb") as source:
                shutil.copyfileobj(source, copy)
            copy.flush()
            return _load(copy.name if isinstance(copy.name, str) else f"/proc/self/fd/{copy.name}")
    raise UnsupportedFeatureError(
        f"this process was forked, and cannot load a copy of {origin.name} for its requests to object stores: set "
        "TMPDIR to a directory with free space from which files may be executed, or start processes without a fork "
        "('spawn')"
    )


def _memory_file() -> BinaryIO:
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no files in memory")
    return os.fdopen(os.memfd_create("obstore"), "wb")


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, path))
    if spec is None or spec.loader is None:  # for the type checker: the loader is given
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


T = TypeVar("T")

_CLASSES: Final = {StoreKind.S3: "S3Store", StoreKind.AZURE: "AzureStore", StoreKind.GCS: "GCSStore"}
# A wrong endpoint is reported within ten seconds; a store that has answered before is retried as long as the options
# say.
_FIRST_TIMEOUT_SECONDS: Final = 5.0
_FIRST_RETRY_SECONDS: Final = 4.0
_FIRST_RETRIES: Final = 3
_FIRST_WAIT_SECONDS: Final = 0.1
_MAX_WAIT_SECONDS: Final = 10.0


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
    _keys: FetchedKeys | None = field(default=None, repr=False)

    def call(self, function: Callable[[Any, Any], T], *, once: bool = False) -> T:
        """Call a function with the library and a store.

        Args:
            function: called a second time if the store's first answer to this process is that it is busy: from then on,
                requests are retried as long as the options say.
            once: the library does not retry requests.

        Raises:
            StoreFailureError: the request failed.
        """
        is_first = not self.has_answered
        try:
            return self._call(function, "once" if once else "patient", is_first=is_first)
        except StoreFailureError as error:
            if once or not is_first or not self.has_answered or not error.failure.is_retryable:
                raise
        return self._call(function, "patient", is_first=False)

    def await_answer(self, key: str) -> None:
        """Make sure that the store has answered once, before a request that takes long or cannot be repeated.

        Raises:
            StoreFailureError: it does not answer, or refuses.
        """
        if self.has_answered:
            return
        try:
            self.call(lambda library, store: library.head(store, key))
        except StoreFailureError as error:
            if not error.failure.is_of_store or error.failure.is_retryable:
                raise

    def _call(self, function: Callable[[Any, Any], T], name: str, *, is_first: bool) -> T:
        store = self._store(f"first {name}" if is_first else name)
        try:
            result = function(self.library, store)
        except BaseException as error:
            known = (OSError, ValueError, self.library.exceptions.BaseError)
            if not isinstance(error, known) and type(error).__name__ != PANIC:
                raise
            failure = failure_of(error)
            self.has_answered = self.has_answered or failure.is_of_store
            if failure.has_expired:
                self._forget(store)
            # No cause: its text contains URLs, which may contain signatures.
            raise StoreFailureError(failure) from None
        self.has_answered = True
        return result

    def _forget(self, store: Any) -> None:  # noqa: ANN401 - see ``_store``
        """Have the next request read the keys of the environment again."""
        with self.lock:
            self._stores = {name: each for name, each in self._stores.items() if each is not store}
            self._keys = None

    def preset(self, store: Any) -> None:  # noqa: ANN401 - see ``_store``
        """Use a store object of the library for all requests, such as one in memory for tests."""
        with self.lock:
            self._stores = dict.fromkeys(("once", "patient", "first once", "first patient"), store)

    def _store(self, name: str) -> Any:  # noqa: ANN401 - a class of the library, of which a process may have two
        with self.lock:
            if name not in self._stores:
                self._stores[name] = self._open(name)
            return self._stores[name]

    def _open(self, name: str) -> Any:  # noqa: ANN401 - see above
        settings = self.settings
        client = settings.client_options()
        retries, seconds = settings.max_retries, settings.retry_timeout_ms / 1000
        if name.startswith("first"):
            retries, seconds = min(retries, _FIRST_RETRIES), min(seconds, _FIRST_RETRY_SECONDS)
            client["timeout"] = min(client["timeout"], timedelta(seconds=_FIRST_TIMEOUT_SECONDS))
        if name.endswith("once"):
            retries = 0
        if settings.address.kind is StoreKind.S3:
            self._keys = self._keys or credential_provider(settings.address.root, dict(settings.config))
        opened = getattr(self.library._store, _CLASSES[settings.address.kind])  # noqa: SLF001 - its compiled half
        try:
            return opened(
                settings.address.bucket,
                config=dict(settings.config),
                client_options=client,
                retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=seconds)},
                **({} if self._keys is None else {"credential_provider": self._keys}),
            )
        except (OSError, ValueError, self.library.exceptions.BaseError) as error:
            raise StoreFailureError(replace(failure_of(error), name=NOT_OPENED)) from None


def content_of(got: Any) -> bytes:  # noqa: ANN401 - of a library without types
    """Return the bytes of an answer of the library to ``get``.

    Raises:
        StoreFailureError: they are fewer than the headers of the answer state.
    """
    data, (start, end) = bytes(got.bytes()), got.range
    if len(data) != end - start:
        raise StoreFailureError(Failure(name=CUT_OFF, status=None, code=None, text=f"{len(data)} of {end - start}"))
    return data


class Tries:
    """How often a request that the library sends once is sent again, by the settings of the store."""

    def __init__(self, client: StoreClient) -> None:
        self._client = client
        self._started = time.monotonic()
        self._count = 0
        self._wait_seconds = _FIRST_WAIT_SECONDS

    def wait_for_next(self) -> bool:
        """Wait before the next try; False, without a wait, if there is to be none."""
        settings = self._client.settings
        most, seconds = settings.max_retries, settings.retry_timeout_ms / 1000
        if not self._client.has_answered:
            most, seconds = min(most, _FIRST_RETRIES - 1), min(seconds, _FIRST_RETRY_SECONDS)
        if self._count >= most or time.monotonic() - self._started >= seconds:
            return False
        self._count += 1
        time.sleep(self._wait_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - not for secrets
        self._wait_seconds = min(2 * self._wait_seconds, _MAX_WAIT_SECONDS)
        return True


@dataclass(slots=True)
class _Clients:
    """The clients of one process."""

    process_id: int = 0
    by_settings: dict[StoreSettings, StoreClient] = field(default_factory=dict)
    inherited: list[dict[StoreSettings, StoreClient]] = field(default_factory=list)
    """Those of the parent process: dropping one may wait for a lock that a thread of the parent held at the fork."""
    lock: threading.Lock = field(default_factory=threading.Lock)


_CLIENTS: Final = _Clients()


def client_of(settings: StoreSettings) -> StoreClient:
    """Return this process's client; a forked process creates its own clients."""
    with _CLIENTS.lock:
        if _CLIENTS.process_id != os.getpid():
            _CLIENTS.inherited.append(_CLIENTS.by_settings)
            _CLIENTS.process_id, _CLIENTS.by_settings = os.getpid(), {}
        client = _CLIENTS.by_settings.get(settings)
        if client is None:
            client = _CLIENTS.by_settings[settings] = StoreClient(settings, load_library())
        return client


def _renew_locks() -> None:
    # Another thread of the parent process may have held one at the fork.
    _LOADED.lock = threading.Lock()
    _CLIENTS.lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)

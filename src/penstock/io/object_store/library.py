"""Load the object store library (obstore) so that this process can use it.

The library's threads belong to the process that first used it: in a process forked from that one every call would
block forever. A forked process therefore loads a copy of the library's file, which starts its own threads.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import obstore
import obstore.store

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

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
            _LOADED.module = sys.modules[_NAME]
        elif _LOADED.process_id != os.getpid():
            _LOADED.module = _load_copy()
        _LOADED.process_id = os.getpid()
        return _LOADED.module


def _load_copy() -> ModuleType:
    """Load a copy of the library's file; the system treats another file as another library.

    Raises:
        UnsupportedFeatureError: no place for the copy permits it.
    """
    origin = Path(obstore.__path__[0]) / Path(sys.modules[_NAME].__file__ or "").name
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


def _renew_lock() -> None:
    # Another thread of the parent process may have held the lock at the fork.
    _LOADED.lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)

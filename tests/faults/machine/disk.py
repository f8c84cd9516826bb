"""A local file system whose calls fail as those of a full, broken or read-only disk do, one at a time or from then on.

The faults are put below ``LocalFileIO``, where the operating system would answer, so that what it does about them is
tested too. Streams that pyarrow writes into are Python objects here; that pyarrow's own files fail in the same way is
tested with limits of the operating system.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from penstock.io import local
from penstock.table.write import spill

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


class Step(StrEnum):
    """What is asked of the operating system."""

    OPEN = "open"
    READ = "read"
    CREATE = "create"
    WRITE = "write"
    FLUSH = "flush"
    CLOSE = "close"
    LINK = "link"
    RENAME = "rename"
    DELETE = "delete"
    MAKE_DIRECTORY = "make directory"
    LIST = "list"
    LOOK = "look"


class Moment(StrEnum):
    """How much of the call had happened when it failed."""

    BEFORE = "before"
    HALF = "half"
    AFTER = "after"


_SPACE: Final = frozenset(
    {Step.CREATE, Step.WRITE, Step.FLUSH, Step.CLOSE, Step.LINK, Step.RENAME, Step.MAKE_DIRECTORY}
)
_CHANGES: Final = frozenset(
    {Step.CREATE, Step.WRITE, Step.FLUSH, Step.LINK, Step.RENAME, Step.MAKE_DIRECTORY, Step.DELETE}
)
_HANDLES: Final = frozenset({Step.OPEN, Step.CREATE, Step.LIST})

REACHES: Final = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EROFS: _CHANGES,
    errno.EIO: frozenset(Step),
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
    errno.ENOMEM: frozenset({Step.OPEN, Step.READ, Step.CREATE, Step.WRITE, Step.LIST, Step.LINK}),
}
"""Which calls answer so. ENOMEM stands for Python's ``MemoryError``."""

_MOMENTS: Final = {
    Step.WRITE: (Moment.BEFORE, Moment.HALF),
    Step.CLOSE: (Moment.AFTER,),  # the handle is free whatever ``close`` answers
    Step.LINK: (Moment.BEFORE, Moment.AFTER),
    Step.RENAME: (Moment.BEFORE, Moment.AFTER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Which calls fail, and how.

    Attributes:
        at: number of the first call that fails, from 1.
        times: how many of the calls that can answer so fail, from that one on; None for all.
        step: calls of other kinds do not fail; None for those that can answer so.
        path_end: calls on other paths do not fail.
    """

    number: int
    at: int = 1
    moment: Moment = Moment.BEFORE
    times: int | None = 1
    step: Step | None = None
    path_end: str = ""

    def reaches(self, number: int, step: Step, path: str) -> bool:
        """Whether a call is one of those that fail."""
        return (
            number >= self.at
            and step in (REACHES[self.number] if self.step is None else {self.step})
            and path.endswith(self.path_end)
            and (number > self.at or self.moment in moments_of(step))
        )

    def __str__(self) -> str:
        often = "for good" if self.times is None else f"{self.times} times"
        return f"{errno.errorcode[self.number]} {often} from call {self.at} on, {self.moment}"


def moments_of(step: Step) -> tuple[Moment, ...]:
    """When a call of this kind can fail."""
    return _MOMENTS.get(step, (Moment.BEFORE,))


class FailingDisk:
    """The calls of ``LocalFileIO`` below one directory: counted, and failing as told.

    Attributes:
        calls: what was asked since ``begin``.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._left = 0
        self._is_watching = False
        self.calls: list[tuple[Step, str]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand below ``LocalFileIO`` for as long as the test takes."""
        for name, step in (
            ("hardlink_to", Step.LINK),
            ("replace", Step.RENAME),
            ("rename", Step.RENAME),
            ("unlink", Step.DELETE),
            ("rmdir", Step.DELETE),
            ("mkdir", Step.MAKE_DIRECTORY),
            ("stat", Step.LOOK),
        ):
            monkeypatch.setattr(Path, name, self._wrapped(getattr(Path, name), step))
        for name, step in (("open", Step.OPEN), ("scandir", Step.LIST), ("lstat", Step.LOOK)):
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name), step))
        fsync = os.fsync
        monkeypatch.setattr(
            os,
            "fsync",
            lambda handle: self.call(Step.FLUSH, os.readlink(f"/proc/self/fd/{handle}"), lambda: fsync(handle)),  # noqa: PTH115 - Path is watched
        )
        open_path = Path.open

        def create(path: Path, mode: str = "r", **named: Any) -> Any:
            if "x" not in mode:
                return open_path(path, mode, **named)
            return _File(self, str(path), self.call(Step.CREATE, path, lambda: open_path(path, mode)))

        monkeypatch.setattr(Path, "open", create)
        monkeypatch.setattr(
            local,
            "open",
            lambda path, mode, opener: _File(self, path, open(path, mode, opener=opener)),  # noqa: SIM115 - passed on
            raising=False,
        )
        monkeypatch.setattr(local, "pa", SimpleNamespace(OSFile=self._open_arrow))
        temporary = SimpleNamespace(TemporaryFile=self._open_temporary, gettempdir=tempfile.gettempdir)
        monkeypatch.setattr(spill, "tempfile", temporary)

    def begin(self, fault: Fault | None = None) -> None:
        """Count from now on; fail as told."""
        self.calls.clear()
        self._fault = fault
        self._left = -1 if fault is None or fault.times is None else fault.times
        self._is_watching = True

    def end(self) -> None:
        """The disk is well again."""
        self._is_watching = False

    def call(self, step: Step, path: object, effect: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        """Do what is asked, or fail."""
        if not self._is_watching or not str(path).startswith(self._root):
            return effect()
        with self._lock:
            self.calls.append((step, str(path)))
            fault = self._fault
            number = len(self.calls)
            fails = fault is not None and self._left != 0 and fault.reaches(number, step, str(path))
            if fails and self._left > 0:
                self._left -= 1
        if fault is None or not fails:
            return effect()
        moment = fault.moment if number == fault.at else moments_of(step)[0]
        if moment is Moment.HALF and half is not None:
            half()
        elif moment is Moment.AFTER:
            effect()
        if fault.number == errno.ENOMEM:
            raise MemoryError
        raise OSError(fault.number, os.strerror(fault.number), str(path))

    def _wrapped(self, call: Callable[..., Any], step: Step) -> Callable[..., Any]:
        def wrapped(path: Any, *arguments: Any, **named: Any) -> Any:
            return self.call(step, path, lambda: call(path, *arguments, **named))

        return wrapped

    def _open_arrow(self, path: str, mode: Any) -> _File:
        step = Step.CREATE if mode == "wb" else Step.OPEN
        return _File(self, path, self.call(step, path, lambda: pa.OSFile(path, mode)))

    def _open_temporary(self, prefix: str, dir: str | None) -> _File:
        """Open a file without a name, which counts as one of this disk."""
        path = f"{self._root}/{prefix}"
        return _File(self, path, self.call(Step.CREATE, path, lambda: tempfile.TemporaryFile(prefix=prefix, dir=dir)))


class _File:
    """An open file; its reads, writes and its close are calls of the disk."""

    def __init__(self, disk: FailingDisk, path: str, inner: Any) -> None:
        self._disk = disk
        self._path = path
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: Any) -> Any:
        whole = memoryview(data).cast("B")
        return self._disk.call(
            Step.WRITE, self._path, lambda: self._inner.write(data), lambda: self._inner.write(whole[: len(whole) // 2])
        )

    def read(self, *arguments: Any) -> Any:
        return self._disk.call(Step.READ, self._path, lambda: self._inner.read(*arguments))

    def close(self) -> None:
        if not self._inner.closed:
            try:
                self._disk.call(Step.CLOSE, self._path, self._inner.close)
            finally:
                self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""A local file system that loses power: what it may hold afterwards, whenever that happens.

Only what was flushed is sure to be there. A name that was not flushed with its directory may be there or not; the
content of a file that was not flushed is taken to be lost, so its name stands for an empty file, as ext4 leaves it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

_CALLS = ("hardlink_to", "replace", "rename", "unlink", "mkdir", "rmdir")


@dataclass(frozen=True, slots=True)
class _Node:
    """A file by its inode, or a directory by its path of now."""

    inode: int
    is_dir: bool


@dataclass(slots=True)
class PowerCuts:
    """Watches a directory and looks at what a power cut would leave, after each call that changes names or flushes.

    Attributes:
        check: gets a directory with what a cut would leave.
        cuts: how many were looked at.
    """

    root: Path
    scratch: Path
    check: Callable[[Path], None]
    cuts: int = 0
    _flushed: dict[int, bytes] = field(default_factory=dict)
    _names: dict[Path, dict[str, _Node]] = field(default_factory=dict)
    _open: dict[int, int] = field(default_factory=dict)
    _seen: set[frozenset[tuple[str, bytes | None]]] = field(default_factory=set)
    _busy: bool = False

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take what is there for flushed, and look from now on."""
        for directory, _, files in os.walk(self.root):
            self._names[Path(directory)] = self._scan(Path(directory))
            for name in files:
                path = Path(directory, name)
                self._flushed[path.stat().st_ino] = path.read_bytes()
        fsync = os.fsync

        def flush(handle: int) -> None:
            fsync(handle)
            path = Path(f"/proc/self/fd/{handle}").readlink()
            if path.is_relative_to(self.root):
                if path.is_dir():
                    self._names[path] = self._scan(path)
                else:
                    self._flushed[path.stat().st_ino] = path.read_bytes()
            self._look()

        monkeypatch.setattr(os, "fsync", flush)
        for name in _CALLS:
            monkeypatch.setattr(Path, name, self._wrapped(getattr(Path, name)))

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(path: Path, *arguments: Any, **named: Any) -> Any:
            result = call(path, *arguments, **named)
            self._look()
            return result

        return wrapped

    def _look(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            for names in (self._kept(self.root), self._all(self.root)):
                state = dict(names)
                key = frozenset(state.items())
                if key not in self._seen:
                    self._seen.add(key)
                    self._check(state)
        finally:
            self._busy = False

    def _check(self, state: dict[str, bytes | None]) -> None:
        self.cuts += 1
        target = self.scratch / f"cut-{self.cuts}"
        target.mkdir(parents=True)
        for name, content in sorted(state.items()):
            path = target / name
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)
        self.check(target)

    def _kept(self, directory: Path, prefix: str = "") -> Iterator[tuple[str, bytes | None]]:
        """What is there for sure: names that were flushed with their directory."""
        for name, node in self._names.get(directory, {}).items():
            yield from self._entry(directory, prefix, name, node, self._kept)

    def _all(self, directory: Path, prefix: str = "") -> Iterator[tuple[str, bytes | None]]:
        """All names, flushed or not."""
        for name, node in self._scan(directory).items():
            yield from self._entry(directory, prefix, name, node, self._all)

    def _entry(
        self,
        directory: Path,
        prefix: str,
        name: str,
        node: _Node,
        below: Callable[[Path, str], Iterator[tuple[str, bytes | None]]],
    ) -> Iterator[tuple[str, bytes | None]]:
        if not node.is_dir:
            yield f"{prefix}{name}", self._flushed.get(node.inode, b"")
            return
        yield f"{prefix}{name}", None
        yield from below(directory / name, f"{prefix}{name}/")

    def _scan(self, directory: Path) -> dict[str, _Node]:
        found = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                    if not entry.is_dir() and info.st_ino not in self._open:
                        # Held open, so that no other file gets its number.
                        self._open[info.st_ino] = os.open(entry.path, os.O_RDONLY)
                except FileNotFoundError:
                    continue
                found[entry.name] = _Node(info.st_ino, entry.is_dir())
        return found

    def close(self) -> None:
        """Let go of the files."""
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()

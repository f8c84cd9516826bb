"""Storage in front of another storage: delegates every call."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from penstock.io.file_io import FileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

    from penstock.io.file_io import FileStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappingFileIO(FileIO):
    """``FileIO`` that delegates to ``inner``, with each path mapped by ``real``."""

    inner: FileIO

    def real(self, path: str) -> str:
        """Return the path for ``inner``."""
        return path

    def read(self, path: str) -> bytes:
        """Delegate."""
        return self.inner.read(self.real(path))

    def write(self, path: str, data: bytes) -> None:
        """Delegate."""
        self.inner.write(self.real(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Delegate."""
        return self.inner.put_if_absent(self.real(path), data)

    def open_input(self, path: str) -> BinaryIO | Any:  # noqa: ANN401 - as the interface has it
        """Delegate."""
        return self.inner.open_input(self.real(path))

    def open_output(self, path: str) -> BinaryIO | Any:  # noqa: ANN401
        """Delegate."""
        return self.inner.open_output(self.real(path))

    def list(self, path: str) -> Sequence[FileStatus]:
        """Delegate; the returned paths are in the form that the other methods take."""
        real = self.real(path)
        found = self.inner.list(real)
        return found if real == path else [replace(each, path=f"{path.rstrip('/')}/{each.name}") for each in found]

    def exists(self, path: str) -> bool:
        """Delegate."""
        return self.inner.exists(self.real(path))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delegate."""
        return self.inner.delete(self.real(path), recursive=recursive)

    def rename_file(self, source: str, target: str) -> None:
        """Delegate."""
        self.inner.rename_file(self.real(source), self.real(target))

    def rename_dir(self, source: str, target: str) -> bool:
        """Delegate."""
        return self.inner.rename_dir(self.real(source), self.real(target))

    def to_uri(self, path: str) -> str:
        """Delegate."""
        return self.inner.to_uri(self.real(path))

    def to_uris(self, directory: str, names: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Delegate."""
        return self.inner.to_uris(self.real(directory), names)

    @property
    def is_object_store(self) -> bool:
        """Delegate."""
        return self.inner.is_object_store

    @property
    def is_slow(self) -> bool:
        """Delegate."""
        return self.inner.is_slow

    @property
    def is_durable(self) -> bool:
        """Delegate."""
        return self.inner.is_durable

    @property
    def has_directories(self) -> bool:
        """Delegate."""
        return self.inner.has_directories

    @property
    def storage(self) -> FileIO:
        """Delegate."""
        return self.inner.storage

    def storage_options(self) -> dict[str, str]:
        """Delegate."""
        return self.inner.storage_options()

    def confined(self, root: str, *, readable: Sequence[str] = (), deletable: Sequence[str] = ()) -> Self:
        """Delegate."""
        return replace(self, inner=self.inner.confined(root, readable=readable, deletable=deletable))

    def unconfined(self) -> Self:
        """Delegate."""
        return replace(self, inner=self.inner.unconfined())

    def with_durability(self, *, durable: bool) -> FileIO:
        """Delegate."""
        return replace(self, inner=self.inner.with_durability(durable=durable))

    def has_file(self, path: str) -> bool:
        """Delegate."""
        return self.inner.has_file(self.real(path))

    def file_version(self, path: str) -> Hashable:
        """Delegate."""
        return self.inner.file_version(self.real(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Delegate."""
        return self.inner.read_range(self.real(path), start, length)

    def flush(self, files: Collection[str], *, root: str) -> None:
        """Delegate."""
        self.inner.flush([self.real(path) for path in files], root=root)

    @property
    def delete_batch_size(self) -> int:
        """Delegate."""
        return self.inner.delete_batch_size

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delegate."""
        self.inner.delete_many([self.real(path) for path in paths])

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Yield this layer in front of the view of ``inner``."""
        with self.inner.prefetch() as ahead:
            yield self if ahead is self.inner else replace(self, inner=ahead)

    def request_read(self, path: str, *, then: Callable[[bytes], None] | None = None, uses: int = 1) -> None:
        """Delegate."""
        self.inner.request_read(self.real(path), then=then, uses=uses)

    def request_list(self, path: str) -> None:
        """Delegate."""
        self.inner.request_list(self.real(path))

    def is_requested(self, path: str) -> bool:
        """Delegate."""
        return self.inner.is_requested(self.real(path))

    def drop_requested(self, prefix: str = "") -> None:
        """Delegate."""
        self.inner.drop_requested(self.real(prefix))

"""What the tests of faults share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import pytest

from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_STORES: Final = itertools.count()


@pytest.fixture
def new_storage() -> Iterator[Callable[[Mapping[str, bytes]], MemoryFileIO]]:
    """A function that makes a storage with some files; what it made is discarded at the end."""
    made: list[MemoryFileIO] = []

    def make(files: Mapping[str, bytes]) -> MemoryFileIO:
        storage = MemoryFileIO(f"new-storage-{next(_STORES)}")
        made.append(storage)
        for path, data in files.items():
            storage.write(path, data)
        return storage

    yield make
    for storage in made:
        storage.discard()

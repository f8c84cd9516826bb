"""What the tests of faults share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import pytest

from penstock.io.memory import MemoryFileIO
from penstock.testing.file_io import Fault, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.testing.file_io import Call

_STORES: Final = itertools.count()


@pytest.fixture(params=["sample", pytest.param("all", marks=pytest.mark.slow)])
def faults_at(request: pytest.FixtureRequest) -> Callable[[Sequence[Call]], list[tuple[Fault, int]]]:
    """A function that says which faults to try, and at which calls, counted from 1.

    Each call fails in one way, the ways taking turns; the creation of a snapshot, which decides, fails in all. The long
    version fails each call in all ways.
    """

    def choose(calls: Sequence[Call]) -> list[tuple[Fault, int]]:
        kinds = list(Fault)
        return [
            (fault, at)
            for at, call in enumerate(calls, 1)
            for number, fault in enumerate(kinds)
            if request.param == "all" or call.operation is Operation.PUT_IF_ABSENT or at % len(kinds) == number
        ]

    return choose


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

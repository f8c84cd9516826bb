"""The store in memory keeps the seam's promises, by name and inside one process."""

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StorageError
from penstock.io.file_io import FileIO
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.testing.suites import FileIOSuite

COUNTER = itertools.count(1)


class TestMemoryFileIO(FileIOSuite):
    @pytest.fixture
    def file_io(self, request: pytest.FixtureRequest) -> Iterator[FileIO]:
        file_io = MemoryFileIO(request.node.nodeid)
        yield file_io
        file_io.discard()

    @pytest.fixture
    def root(self) -> str:
        return "memory://suite/root"


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[MemoryFileIO]:
    file_io = MemoryFileIO(request.node.nodeid, clock=lambda: next(COUNTER))
    yield file_io
    file_io.discard()


def test_a_store_is_shared_by_name(store: MemoryFileIO) -> None:
    store.write("/a", b"1")
    assert MemoryFileIO(store.name).read("/a") == b"1"
    assert not MemoryFileIO("another").exists("/a")
    assert MemoryFileIO(store.name) == store


def test_a_discarded_store_is_empty_again(store: MemoryFileIO) -> None:
    store.write("/a", b"1")
    store.discard()
    assert not store.exists("/a")


def test_times_come_from_the_clock(store: MemoryFileIO) -> None:
    start = next(COUNTER)
    store.write("/first", b"")
    store.put_if_absent("/second", b"")
    with store.open_output("/third") as output:
        output.write(b"x")
    times = [status.modified_millis for status in store.list("/")]
    assert times == [start + 1, start + 2, start + 4]


def test_a_stream_that_is_not_closed_leaves_an_empty_object(store: MemoryFileIO) -> None:
    output = store.open_output("/data")
    output.write(b"lost")
    del output
    gc.collect()
    assert store.read("/data") == b""


def test_an_open_stream_does_not_change(store: MemoryFileIO) -> None:
    store.write("/data", b"old")
    with store.open_input("/data") as stream:
        store.write("/data", b"new")
        assert stream.read() == b"old"


def test_a_listing_does_not_look_below_each_child(store: MemoryFileIO) -> None:
    for number in range(1_000):
        store.write(f"/t/bucket-{number % 3}/data-{number}", b"")
    assert [status.name for status in store.list("/t")] == ["bucket-0", "bucket-1", "bucket-2"]
    assert len(store.list("/t/bucket-1")) == 333


names = st.sampled_from(["a", "a.b", "a/b", "a/b/c", "a0", "b", "a/b.c", "c/a/b", "c"])
steps = st.lists(st.tuples(st.sampled_from(["write", "put", "delete", "sweep", "rename"]), names, names), max_size=12)


@given(steps=steps)
def test_it_behaves_as_the_local_file_system_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    local = LocalFileIO(), str(tmp_path_factory.mktemp("model"))
    memory = MemoryFileIO(local[1]), "memory://model"
    for step in steps:
        expected = outcome(*local, step)
        if expected == "differs":
            break  # a file and a directory of one name, or an empty directory: only local ones have those
        assert outcome(*memory, step) == expected
        assert tree(*memory) == tree(*local)
    memory[0].discard()


def outcome(file_io: FileIO, root: str, step: tuple[str, str, str]) -> object:
    kind, name, other = step
    path = f"{root}/{name}"
    if isinstance(file_io, LocalFileIO) and is_local_only(Path(root), kind, name, other):
        return "differs"
    try:
        match kind:
            case "write":
                return file_io.write(path, name.encode())
            case "put":
                return file_io.put_if_absent(path, b"put")
            case "rename":
                return file_io.rename_dir(path, f"{root}/{other}")
            case _:
                return file_io.delete(path, recursive=kind == "sweep")
    except (StorageError, LookupError) as error:
        return type(error)


def is_local_only(root: Path, kind: str, name: str, other: str) -> bool:
    target = other if kind == "rename" else name
    above = [(root / target).parents[depth] for depth in range(target.count("/"))]
    empty = any(path.is_dir() and not any(path.iterdir()) for path in root.rglob("*"))
    blocked = any(path.is_file() for path in above) or (kind == "write" and (root / name).is_dir())
    odd_move = kind == "rename" and ((root / name).is_file() or f"{other}/".startswith(f"{name}/"))
    return empty or blocked or odd_move


def tree(file_io: FileIO, root: str) -> dict[str, bytes]:
    found = {}
    for status in file_io.list(root):
        found.update(
            {f"{status.name}/{name}": data for name, data in tree(file_io, status.path).items()}
            if status.is_dir
            else {status.name: file_io.read(status.path)}
        )
    return found

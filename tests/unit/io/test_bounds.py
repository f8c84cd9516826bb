"""Storage with bounds goes to its directory and nowhere else, links included."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import InvalidOptionError, StorageError
from penstock.io.bounds import Bounds
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.io.resolve import resolve
from penstock.table.ref import local_paths
from penstock.testing.suites import FileIOSuite

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO


class TestConfinedFileIO(FileIOSuite):
    @pytest.fixture
    def file_io(self, root: str) -> FileIO:
        return LocalFileIO().confined(root)

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/not/there/yet"


_CALLS: dict[str, Callable[[FileIO, str], object]] = {
    "read": lambda file_io, path: file_io.read(path),
    "write": lambda file_io, path: file_io.write(path, b"new"),
    "put": lambda file_io, path: file_io.put_if_absent(path, b"new"),
    "open": lambda file_io, path: file_io.open_input(path),
    "create": lambda file_io, path: file_io.open_output(path),
    "list": lambda file_io, path: file_io.list(path),
    "exists": lambda file_io, path: file_io.exists(path),
    "delete": lambda file_io, path: file_io.delete(path),
    "rename": lambda file_io, path: file_io.rename_file(path, f"{path}-2"),
    "rename to": lambda file_io, path: file_io.rename_file(f"{Path(path).parent.parent}/table/own", path),
    "rename directory": lambda file_io, path: file_io.rename_dir(path, f"{path}-2"),
    "uri": lambda file_io, path: file_io.to_uri(path),
    "uris": lambda file_io, path: file_io.to_uris(str(Path(path).parent), ["other", Path(path).name]),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A table's directory, with another beside it that holds a file."""
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "own").write_text("own")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("precious")
    return tmp_path / "table"


@pytest.mark.parametrize("name", _CALLS)
@pytest.mark.parametrize("path", ["../outside/file", "../table-2/file", "inner/../../outside/file", "link/file"])
def test_no_call_leaves_the_directory(root: Path, name: str, path: str) -> None:
    (root / "link").symlink_to(root.parent / "outside")
    file_io = LocalFileIO().confined(str(root))
    with pytest.raises(StorageError, match=r"outside of the table's directory|is a symbolic link"):
        _CALLS[name](file_io, f"{root}/{path}" if path.startswith(("inner", "link")) else f"{root.parent}/{path[3:]}")
    assert (root.parent / "outside" / "file").read_text() == "precious"
    assert sorted(path.name for path in root.parent.rglob("*")) == ["file", "link", "outside", "own", "table"]


def test_a_link_to_a_file_is_deleted_itself_and_not_opened(root: Path) -> None:
    (root / "data").symlink_to(root.parent / "outside" / "file")
    file_io = LocalFileIO().confined(str(root))
    with pytest.raises(StorageError, match="table/data is a symbolic link"):
        file_io.open_input(f"{root}/data")
    assert file_io.delete(f"{root}/data")
    assert (root.parent / "outside" / "file").exists()


def test_a_listing_within_bounds_has_links_as_small_files(root: Path) -> None:
    for name, target in (("away", root.parent / "outside"), ("gone", Path("/nowhere")), ("circle", root / "circle")):
        (root / name).symlink_to(target)
    found = LocalFileIO().confined(str(root)).list(str(root))
    assert [(status.name, status.is_dir) for status in found] == [
        ("away", False),
        ("circle", False),
        ("gone", False),
        ("own", False),
    ]


def test_links_above_the_directory_are_followed(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    assert LocalFileIO().confined(f"{root.parent}/alias").read(f"{root.parent}/alias/own") == b"own"


def test_what_the_user_allows_is_read_and_deleted_but_not_written(root: Path) -> None:
    outside = root.parent / "outside"
    reading = LocalFileIO().confined(str(root), readable=local_paths([outside.as_uri(), "s3://b", "memory://m"]))
    assert reading.read(f"{outside}/file") == b"precious"
    for name in ("write", "put", "create", "delete", "rename"):
        with pytest.raises(StorageError, match="outside of the table's directory"):
            _CALLS[name](reading, f"{outside}/file")
    (outside / "link").symlink_to("/etc")
    with pytest.raises(StorageError, match="symbolic link"):
        reading.list(f"{outside}/link")
    assert reading.confined(str(root), deletable=[str(outside)]).delete(f"{outside}/file")


def test_bounds_travel_to_other_processes_and_come_off(root: Path) -> None:
    file_io = LocalFileIO(durable=True).confined(str(root))
    assert pickle.loads(pickle.dumps(file_io)) == file_io
    assert file_io.unconfined() == LocalFileIO(durable=True)
    memory = MemoryFileIO("any")
    assert memory.confined("memory://any/t") is memory
    assert memory.unconfined() is memory


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        for call in ("read", "open"):
            with pytest.raises(StorageError, match=rf"cannot {call} .*{name}: .* only regular files are read"):
                _CALLS[call](LocalFileIO(), f"{tmp_path}/{name}")


def test_what_is_too_large_for_metadata_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "LATEST").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(StorageError, match="it has 1073741824 bytes"):
        LocalFileIO().read(f"{tmp_path}/LATEST")


def test_a_listing_leaves_out_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "there").mkdir()
    assert [status.name for status in LocalFileIO().list(str(tmp_path))] == ["there"]


def test_a_nul_is_an_error_that_says_so(root: Path) -> None:
    for call in _CALLS.values():
        with pytest.raises(StorageError, match="no path has a NUL"):
            call(LocalFileIO().confined(str(root)), f"{root}/own\0")
    with pytest.raises(InvalidOptionError, match="has a NUL in it"):
        resolve(f"{root}\0")


def test_a_directory_that_becomes_a_link_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table" / "bucket-0").mkdir(parents=True)
    (tmp_path / "table" / "bucket-0" / "data").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").touch()
    file_io = LocalFileIO(bounds=Bounds(root=f"{tmp_path}/table"))
    check = Bounds.check_delete

    def swap_after(self: Bounds, path: str) -> tuple[str, tuple[str, ...]]:
        found = check(self, path)
        (tmp_path / "table" / "bucket-0").rename(tmp_path / "table" / "old")
        (tmp_path / "table" / "bucket-0").symlink_to(tmp_path / "elsewhere")
        return found

    monkeypatch.setattr(Bounds, "check_delete", swap_after)
    assert file_io.delete(f"{tmp_path}/table/bucket-0/data") is False
    assert (tmp_path / "elsewhere" / "data").exists()


def test_a_directory_that_becomes_a_link_while_a_tree_is_deleted_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table" / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "table" / "tree" / "inner" / "data").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").touch()
    open_fd = os.open

    def swap_first(path: str, flags: int, *args: int, dir_fd: int | None = None) -> int:
        inner = tmp_path / "table" / "tree" / "inner"
        if path == "inner" and not inner.is_symlink():
            inner.rename(tmp_path / "away")
            inner.symlink_to(tmp_path / "elsewhere")
        return open_fd(path, flags, *args, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_first)
    file_io = LocalFileIO(bounds=Bounds(root=f"{tmp_path}/table"))
    assert file_io.delete(f"{tmp_path}/table/tree", recursive=True) is True
    assert (tmp_path / "elsewhere" / "data").exists()
    assert not (tmp_path / "table" / "tree").exists()

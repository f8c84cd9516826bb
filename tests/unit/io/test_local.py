"""The local file system keeps the seam's promises, and its own."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import NotFoundError, StorageError
from penstock.io.file_io import FileIO
from penstock.io.local import LocalFileIO
from penstock.io.wrapper import WrappingFileIO
from penstock.testing.file_io import RecordingFileIO
from penstock.testing.suites import FileIOSuite


class TestLocalFileIO(FileIOSuite):
    @pytest.fixture
    def file_io(self) -> FileIO:
        return LocalFileIO()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/not/there/yet"


class TestDurableLocalFileIO(FileIOSuite):
    @pytest.fixture
    def file_io(self) -> FileIO:
        return LocalFileIO(durable=True)

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/not/there/yet"


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def refuse(number: int) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_without_hard_links_there_still_is_one_winner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    monkeypatch.setattr(Path, "hardlink_to", refuse(number))
    file_io = LocalFileIO()
    assert file_io.put_if_absent(f"{tmp_path}/snapshot-1", b"first") is True
    assert file_io.put_if_absent(f"{tmp_path}/snapshot-1", b"second") is False
    assert file_io.read(f"{tmp_path}/snapshot-1") == b"first"
    assert names_in(tmp_path) == ["snapshot-1"]


def test_a_link_whose_answer_was_lost_counts_as_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = Path.hardlink_to

    def link_then_complain(self: Path, target: Path) -> None:
        link(self, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(Path, "hardlink_to", link_then_complain)
    assert LocalFileIO().put_if_absent(f"{tmp_path}/snapshot-1", b"ours") is True
    assert names_in(tmp_path) == ["snapshot-1"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_link_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, durable: bool) -> None:
    monkeypatch.setattr(Path, "hardlink_to", refuse(errno.EIO))
    with pytest.raises(StorageError, match="snapshot-1") as caught:
        LocalFileIO(durable=durable).put_if_absent(f"{tmp_path}/snapshot-1", b"x")
    assert caught.value.retryable
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("call", ["write", "put_if_absent"])
def test_a_full_disk_leaves_nothing_and_is_not_retried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    monkeypatch.setattr(os, "fsync", refuse(errno.ENOSPC))
    with pytest.raises(StorageError, match=r"cannot write .*hint: No space left") as caught:
        getattr(LocalFileIO(durable=True), call)(f"{tmp_path}/hint", b"x")
    assert not caught.value.retryable
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("call", ["write", "put_if_absent"])
def test_temporary_files_have_names_that_clean_up_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    seen: list[str] = []

    def die(*_: object) -> None:
        seen.extend(names_in(tmp_path))
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "hardlink_to", die)
    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        getattr(LocalFileIO(), call)(f"{tmp_path}/snapshot-1", b"x")
    (name,) = seen
    assert name.startswith(".snapshot-1.")
    assert name.endswith(".tmp")


def test_durable_files_are_flushed_before_their_name_appears(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flushed: list[tuple[str, list[str]]] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        flushed.append((Path(f"/proc/self/fd/{handle}").readlink().name, names_in(tmp_path / "t")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    file_io = LocalFileIO(durable=True)
    file_io.put_if_absent(f"{tmp_path}/t/snapshot-1", b"x")
    (above, _), (first, seen_first), (second, seen_second) = flushed
    assert above == tmp_path.name
    assert first.startswith(".snapshot-1.")
    assert "snapshot-1" not in seen_first
    assert second == "t"
    assert seen_second == ["snapshot-1"]
    flushed.clear()
    with file_io.open_output(f"{tmp_path}/t/data") as output:
        output.write(b"x")
    assert not flushed
    (tmp_path / "t" / "b").mkdir()
    (tmp_path / "t" / "b" / "more").touch()
    file_io.flush([f"{tmp_path}/t/data", f"{tmp_path}/t/b/more", f"{tmp_path}/t/gone"], root=str(tmp_path))
    # Side by side, so in any order.
    assert sorted(name for name, _ in flushed) == sorted(["b", "data", "more", "t", tmp_path.name])
    flushed.clear()
    LocalFileIO().put_if_absent(f"{tmp_path}/t/snapshot-2", b"x")
    assert not flushed


def test_an_empty_directory_is_replaced_as_a_killed_process_may_have_left_it(tmp_path: Path) -> None:
    (tmp_path / "old" / "schema").mkdir(parents=True)
    (tmp_path / "new").mkdir()
    assert LocalFileIO().rename_dir(f"{tmp_path}/old", f"{tmp_path}/new") is True
    assert names_in(tmp_path) == ["new"]
    assert names_in(tmp_path / "new") == ["schema"]


def test_neither_a_link_nor_a_file_is_replaced_by_a_directory_or_is_one(tmp_path: Path) -> None:
    for name in ("old", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    (tmp_path / "file").touch()
    (tmp_path / "file2").touch()
    for target in ("link", "file"):
        assert LocalFileIO().rename_dir(f"{tmp_path}/old", f"{tmp_path}/{target}") is False
    with pytest.raises(StorageError, match="not a directory"):
        LocalFileIO().rename_dir(f"{tmp_path}/file", f"{tmp_path}/file2")
    assert names_in(tmp_path) == ["file", "file2", "link", "old", "other"]


def test_a_directory_does_not_move_into_itself(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(StorageError, match="rename"):
        LocalFileIO().rename_dir(f"{tmp_path}/old", f"{tmp_path}/old/new")
    assert names_in(tmp_path / "old") == []


def test_delete_takes_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert LocalFileIO().delete(f"{tmp_path}/empty") is True
    assert names_in(tmp_path) == []


def test_delete_removes_links_and_not_what_they_point_at(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "inner").symlink_to(tmp_path / "kept")
    (tmp_path / "outer").symlink_to(tmp_path / "kept")
    file_io = LocalFileIO()
    assert file_io.delete(f"{tmp_path}/dir", recursive=True) is True
    assert file_io.delete(f"{tmp_path}/outer", recursive=True) is True
    assert names_in(tmp_path) == ["kept"]
    assert names_in(tmp_path / "kept") == ["file"]


def test_delete_goes_on_while_others_add_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rmdir = os.rmdir
    late = iter(["late"])

    def add_once(path: str, *, dir_fd: int | None = None) -> None:
        for name in late:
            (tmp_path / path / name).touch()
        rmdir(path, dir_fd=dir_fd)

    (tmp_path / "dir").mkdir()
    monkeypatch.setattr(os, "rmdir", add_once)
    assert LocalFileIO().delete(f"{tmp_path}/dir", recursive=True) is True
    assert names_in(tmp_path) == []
    assert next(late, None) is None


def test_a_listing_leaves_out_what_vanishes_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert [status.name for status in LocalFileIO().list(str(tmp_path))] == ["there"]


def test_a_listing_has_the_times_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.utime(tmp_path / "file", ns=(0, 1_700_000_000_123_456_789))
    (status,) = LocalFileIO().list(f"{tmp_path}/")
    assert status.modified_millis == 1_700_000_000_123
    assert status.path == f"{tmp_path}/file"


def test_a_directory_that_goes_away_meanwhile_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mkdir = Path.mkdir
    swept = iter([True])

    def make_and_sweep(self: Path, *args: Any, **options: Any) -> None:
        mkdir(self, *args, **options)
        for _ in swept:
            self.rmdir()

    monkeypatch.setattr(Path, "mkdir", make_and_sweep)
    LocalFileIO().write(f"{tmp_path}/bucket-0/file", b"x")
    assert names_in(tmp_path / "bucket-0") == ["file"]


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file_io = LocalFileIO()
    for call in (file_io.write, file_io.put_if_absent):
        with pytest.raises(StorageError, match="file/below"):
            call(f"{tmp_path}/file/below", b"x")
    with pytest.raises(StorageError, match="file/below"):
        file_io.open_output(f"{tmp_path}/file/below")
    with pytest.raises(NotFoundError):
        file_io.read(f"{tmp_path}/file/below")


def test_a_directory_is_not_read_as_a_file(tmp_path: Path) -> None:
    for call in (LocalFileIO().read, LocalFileIO().open_input):
        with pytest.raises(StorageError, match=str(tmp_path)):
            call(str(tmp_path))


@pytest.mark.parametrize(
    ("number", "retryable"), [(errno.EACCES, False), (errno.EIO, True), (errno.ESTALE, True), (errno.EMFILE, True)]
)
def test_errors_say_whether_to_try_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, *, retryable: bool
) -> None:
    monkeypatch.setattr(os, "open", refuse(number))
    with pytest.raises(StorageError, match=f"cannot read {tmp_path}/x: ") as caught:
        LocalFileIO().read(f"{tmp_path}/x")
    assert caught.value.retryable is retryable
    assert isinstance(caught.value.__cause__, OSError)


def test_a_permission_that_is_missing_is_not_an_absence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "stat", refuse(errno.EACCES))
    with pytest.raises(StorageError):
        LocalFileIO().exists(f"{tmp_path}/x")


def test_the_uri_is_percent_encoded() -> None:
    assert LocalFileIO().to_uri("/data/a b/dt=x%3Ay") == "file:///data/a%20b/dt%3Dx%253Ay"


@given(
    st.sampled_from(["/t", "/t/a b", "/t/dt=1"]),
    st.lists(st.text("ab.~-_%é \n", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."}), min_size=1),
)
def test_uris_are_those_of_each_path(directory: str, names: list[str]) -> None:
    parent, last = LocalFileIO().to_uris(directory, names)
    assert [f"{parent}/{name}" for name in last] == [LocalFileIO().to_uri(f"{directory}/{name}") for name in names]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("others", [0, 1_000])
def test_a_linked_file_beside_checked_ones_has_no_uri(tmp_path: Path, count: int, others: int) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "table").mkdir()
    for number in range(others):
        (tmp_path / "table" / f"other-{number}").touch()
    (tmp_path / "table" / "link").symlink_to(tmp_path / "secret")
    file_io = LocalFileIO().confined(str(tmp_path / "table"))
    names = [f"own-{number}" for number in range(count)]
    with pytest.raises(StorageError, match="is a symbolic link"):
        file_io.to_uris(f"{tmp_path}/table", [*names, "link"])


def test_many_files_of_a_directory_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [f"data-{number}.parquet" for number in range(100)]
    for name in names:
        (tmp_path / name).touch()
    file_io = LocalFileIO().confined(str(tmp_path))
    asked: list[str] = []
    monkeypatch.setattr(os.path, "islink", asked.append)
    assert file_io.to_uris(str(tmp_path), names) == (tmp_path.as_uri(), names)
    assert not asked


@pytest.mark.parametrize(
    "file_io",
    [LocalFileIO(), WrappingFileIO(inner=LocalFileIO()), RecordingFileIO(LocalFileIO())],
    ids=lambda file_io: type(file_io).__name__,
)
def test_plain_names_are_returned_without_an_uri_of_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file_io: FileIO
) -> None:
    asked: list[str] = []
    to_uri = LocalFileIO.to_uri

    def counted(self: LocalFileIO, path: str) -> str:
        asked.append(path)
        return to_uri(self, path)

    monkeypatch.setattr(LocalFileIO, "to_uri", counted)
    names = [f"data-{number}.parquet" for number in range(100)]
    assert file_io.to_uris(str(tmp_path), names) == (tmp_path.as_uri(), names)
    assert asked == [f"{tmp_path}/{names[0]}"]
    assert file_io.to_uris(str(tmp_path), [*names, "a name"]) == (tmp_path.as_uri(), [*names, "a%20name"])
    assert len(asked) == 1 + 101

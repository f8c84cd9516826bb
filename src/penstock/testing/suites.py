"""Test suites to inherit: a subclass provides fixtures, and the suite checks the contract of an interface.

Needs pytest. ``pytest.register_assert_rewrite("penstock.testing.suites")`` before the import makes failures readable.
"""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import NotFoundError, StorageError, UnsupportedFeatureError
from penstock.io.file_io import FileIO

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 4


class FileIOSuite:
    """Tests of the contract of ``FileIO`` within one process; other tests check it between processes.

    Override both fixtures; ``root`` is a directory that no other test writes to and that need not exist.

    Attributes:
        odd_names: names of directories that some storages change or refuse.
        has_directories: whether the storage has directories, which can be renamed atomically and whose name no file
            can have. Object stores have none, and refuse to rename one.
    """

    has_directories: ClassVar[bool] = True
    odd_names: ClassVar[tuple[str, ...]] = ("dt=a%3Ab", "a b", "é", "x=1+2", "~", "#", "a:b")

    @pytest.fixture
    def file_io(self) -> FileIO:
        """Return the storage under test."""
        pytest.fail("give the suite a storage: override the fixture 'file_io'")

    @pytest.fixture
    def root(self) -> str:
        """Return a directory path in the form of the storage, without a trailing slash."""
        pytest.fail("give the suite a directory: override the fixture 'root'")

    def test_it_is_a_file_io(self, file_io: FileIO) -> None:
        assert isinstance(file_io, FileIO)

    def test_reading_what_is_not_there_names_the_path(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/file", b"x")
        for path in (f"{root}/nothing", f"{root}/no/thing"):
            with pytest.raises(NotFoundError, match=path):
                file_io.read(path)
            with pytest.raises(NotFoundError, match=path):
                file_io.open_input(path)

    def test_written_bytes_are_read_back(self, file_io: FileIO, root: str) -> None:
        for name, data in (("empty", b""), ("small", b"\x00\xff\n"), ("large", bytes(3_000_000))):
            file_io.write(f"{root}/a/b/{name}", data)
            assert file_io.read(f"{root}/a/b/{name}") == data

    def test_write_replaces_and_leaves_no_other_file(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/hint", b"1, and longer")
        file_io.write(f"{root}/hint", b"2")
        assert file_io.read(f"{root}/hint") == b"2"
        assert [status.name for status in file_io.list(root)] == ["hint"]

    def test_a_reader_sees_whole_objects_only_while_others_write(self, file_io: FileIO, root: str) -> None:
        contents = [bytes([digit]) * 200_000 for digit in range(1, 4)]
        file_io.write(f"{root}/hint", contents[0])
        done = threading.Event()

        def write() -> None:
            for _ in range(30):
                for data in contents:
                    file_io.write(f"{root}/hint", data)

        def read() -> set[bytes]:
            seen = set()
            while not done.is_set():
                seen.add(file_io.read(f"{root}/hint"))
            return seen

        with ThreadPoolExecutor(2) as pool:
            reading = pool.submit(read)
            try:
                pool.submit(write).result()
            finally:
                done.set()
        assert reading.result() <= set(contents)

    def test_put_if_absent_creates_once_and_keeps_the_first(self, file_io: FileIO, root: str) -> None:
        path = f"{root}/snapshot/snapshot-1"
        assert file_io.put_if_absent(path, b"first") is True
        assert file_io.put_if_absent(path, b"second") is False
        assert file_io.read(path) == b"first"
        assert [status.name for status in file_io.list(f"{root}/snapshot")] == ["snapshot-1"]

    def test_put_if_absent_takes_no_place_of_an_older_object(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/file", b"older")
        file_io.write(f"{root}/dir/file", b"older")
        assert file_io.put_if_absent(f"{root}/file", b"new") is False
        if self.has_directories:
            assert file_io.put_if_absent(f"{root}/dir", b"new") is False
        assert file_io.read(f"{root}/file") == b"older"
        assert file_io.read(f"{root}/dir/file") == b"older"

    def test_put_if_absent_has_one_winner_among_threads(self, file_io: FileIO, root: str) -> None:
        rounds = 50

        def contend(index: int) -> bool:
            return file_io.put_if_absent(f"{root}/snapshot-{index // THREADS}", str(index).encode())

        won = _together(contend, rounds * THREADS)
        for number in range(rounds):
            winners = [index for index in range(number * THREADS, (number + 1) * THREADS) if won[index]]
            assert len(winners) == 1
            assert file_io.read(f"{root}/snapshot-{number}") == str(winners[0]).encode()
        assert len(file_io.list(root)) == rounds

    def test_streams_write_and_read_at_any_position(self, file_io: FileIO, root: str) -> None:
        with file_io.open_output(f"{root}/new/dir/data") as output:
            output.write(b"0123")
            output.write(b"456789")
        with file_io.open_input(f"{root}/new/dir/data") as stream:
            stream.seek(4)
            assert stream.read(3) == b"456"
            stream.seek(1)
            assert stream.read() == b"123456789"
            assert stream.tell() == 10
        assert file_io.read(f"{root}/new/dir/data") == b"0123456789"

    def test_pyarrow_takes_the_streams(self, file_io: FileIO, root: str) -> None:
        table = pa.table({"number": list(range(1000)), "text": [str(n) for n in range(1000)]})
        with file_io.open_output(f"{root}/data.parquet") as output:
            pq.write_table(table, output)
        with file_io.open_input(f"{root}/data.parquet") as stream:
            assert pq.ParquetFile(stream).read() == table

    def test_a_listing_has_direct_children_in_order(self, file_io: FileIO, root: str) -> None:
        for name in ("b.txt", "b/2", "b/1/x", "a", "c/z", ".c.tmp", "B"):
            file_io.write(f"{root}/{name}", name.encode())
        listed = file_io.list(root)
        assert [(status.name, status.is_dir) for status in listed] == [
            (".c.tmp", False),
            ("B", False),
            ("a", False),
            ("b", True),
            ("b.txt", False),
            ("c", True),
        ]
        assert [status.size for status in listed] == [6, 1, 1, 0, 5, 0]
        assert all(status.path == f"{root}/{status.name}" for status in listed)
        assert [status.name for status in file_io.list(f"{root}/b")] == ["1", "2"]
        assert file_io.read(listed[1].path) == b"B"

    def test_a_listing_of_nothing_is_empty(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/file", b"")
        assert not file_io.list(f"{root}/nothing")
        assert not file_io.list(f"{root}/file")

    def test_modification_times_do_not_go_back(self, file_io: FileIO, root: str) -> None:
        for name in ("first", "second", "third"):
            file_io.write(f"{root}/{name}", b"")
        times = {status.name: status.modified_millis for status in file_io.list(root)}
        assert times["first"] <= times["second"] <= times["third"]

    def test_files_and_directories_exist(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/dir/file", b"")
        assert file_io.exists(f"{root}/dir/file")
        assert file_io.exists(f"{root}/dir")
        assert not file_io.exists(f"{root}/di")
        assert not file_io.exists(f"{root}/dir/file/below")
        assert not file_io.exists(f"{root}/nothing")

    def test_delete_says_whether_something_was_there(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/file", b"")
        assert file_io.delete(f"{root}/file") is True
        assert file_io.delete(f"{root}/file") is False
        assert file_io.delete(f"{root}/no/thing", recursive=True) is False
        assert not file_io.exists(f"{root}/file")

    def test_delete_takes_a_directory_only_when_told(self, file_io: FileIO, root: str) -> None:
        for name in ("dir/file", "dir/sub/file", "dir2/file"):
            file_io.write(f"{root}/{name}", b"")
        with pytest.raises(StorageError, match=f"{root}/dir"):
            file_io.delete(f"{root}/dir")
        assert file_io.exists(f"{root}/dir/sub/file")
        assert file_io.delete(f"{root}/dir", recursive=True) is True
        assert not file_io.exists(f"{root}/dir")
        assert file_io.exists(f"{root}/dir2/file")

    def test_a_file_moves_alone_to_a_directory_that_need_not_be_there(self, file_io: FileIO, root: str) -> None:
        for name in ("from/1", "from/2"):
            file_io.write(f"{root}/{name}", name.encode())
        file_io.rename_file(f"{root}/from/1", f"{root}/new/dir/one")
        file_io.rename_file(f"{root}/from/2", f"{root}/new/dir/two")
        assert [status.name for status in file_io.list(f"{root}/new/dir")] == ["one", "two"]
        assert file_io.read(f"{root}/new/dir/one") == b"from/1"
        assert file_io.read(f"{root}/new/dir/two") == b"from/2"
        assert not file_io.list(f"{root}/from")

    def test_moving_a_file_that_is_not_there_leaves_nothing(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/here/file", b"1")
        for target in (f"{root}/here/new", f"{root}/new/dir/file"):
            with pytest.raises(NotFoundError, match=f"{root}/nothing"):
                file_io.rename_file(f"{root}/nothing", target)
            assert not file_io.exists(target)
        assert not file_io.exists(f"{root}/new")

    def test_a_directory_moves_with_all_below(self, file_io: FileIO, root: str) -> None:
        self._skip_without_directories(file_io, root)
        file_io.write(f"{root}/old/file", b"1")
        file_io.write(f"{root}/old/sub/file", b"2")
        file_io.write(f"{root}/older", b"3")
        assert file_io.rename_dir(f"{root}/old", f"{root}/db/new") is True
        assert file_io.read(f"{root}/db/new/file") == b"1"
        assert file_io.read(f"{root}/db/new/sub/file") == b"2"
        assert file_io.read(f"{root}/older") == b"3"
        assert not file_io.exists(f"{root}/old")

    def test_a_directory_replaces_nothing(self, file_io: FileIO, root: str) -> None:
        self._skip_without_directories(file_io, root)
        file_io.write(f"{root}/old/file", b"1")
        file_io.write(f"{root}/taken/file", b"2")
        file_io.write(f"{root}/file", b"3")
        for target in ("taken", "file"):
            assert file_io.rename_dir(f"{root}/old", f"{root}/{target}") is False
        assert file_io.read(f"{root}/old/file") == b"1"
        assert file_io.read(f"{root}/taken/file") == b"2"
        assert file_io.read(f"{root}/file") == b"3"

    def test_moving_what_is_not_there_leaves_nothing(self, file_io: FileIO, root: str) -> None:
        self._skip_without_directories(file_io, root)
        with pytest.raises(NotFoundError, match=f"{root}/nothing"):
            file_io.rename_dir(f"{root}/nothing", f"{root}/new")
        assert not file_io.exists(f"{root}/new")

    def test_one_of_several_directories_gets_the_name(self, file_io: FileIO, root: str) -> None:
        self._skip_without_directories(file_io, root)
        rounds = 20
        for index in range(rounds * THREADS):
            file_io.write(f"{root}/source-{index}/file", str(index).encode())

        def contend(index: int) -> bool:
            return file_io.rename_dir(f"{root}/source-{index}", f"{root}/target-{index // THREADS}")

        won = _together(contend, rounds * THREADS)
        for number in range(rounds):
            winners = [index for index in range(number * THREADS, (number + 1) * THREADS) if won[index]]
            assert len(winners) == 1
            assert file_io.read(f"{root}/target-{number}/file") == str(winners[0]).encode()
        assert sum(file_io.exists(f"{root}/source-{index}") for index in range(rounds * THREADS)) == rounds * (
            THREADS - 1
        )

    def _skip_without_directories(self, file_io: FileIO, root: str) -> None:
        if self.has_directories:
            return
        file_io.write(f"{root}/old/file", b"1")
        with pytest.raises(UnsupportedFeatureError, match=f"{root}/old"):
            file_io.rename_dir(f"{root}/old", f"{root}/new")
        assert file_io.exists(f"{root}/old/file")
        assert not file_io.exists(f"{root}/new")
        pytest.skip("the storage has no directories")

    def test_names_are_kept_as_they_are(self, file_io: FileIO, root: str) -> None:
        names = sorted(self.odd_names)
        for name in names:
            file_io.write(f"{root}/{name}/data", name.encode())
            assert file_io.read(f"{root}/{name}/data") == name.encode()
        assert [status.name for status in file_io.list(root)] == names

    def test_a_pickled_copy_sees_the_same_storage(self, file_io: FileIO, root: str) -> None:
        file_io.write(f"{root}/file", b"1")
        copy = pickle.loads(pickle.dumps(file_io))  # noqa: S301 - our own bytes
        assert copy.read(f"{root}/file") == b"1"
        copy.write(f"{root}/file", b"2")
        assert file_io.read(f"{root}/file") == b"2"

    def test_a_path_has_a_uri(self, file_io: FileIO, root: str) -> None:
        scheme, colon, rest = file_io.to_uri(f"{root}/file").partition("://")
        assert scheme.isalnum()
        assert colon
        assert rest.endswith("/file")


def _together(task: Callable[[int], bool], count: int) -> list[bool]:
    """Run the task with 0, 1, ... on several threads, each group of ``THREADS`` numbers at the same time."""
    start = threading.Barrier(THREADS)

    def run(thread: int) -> list[tuple[int, bool]]:
        results = []
        for index in range(thread, count, THREADS):
            start.wait()
            results.append((index, task(index)))
        return results

    with ThreadPoolExecutor(THREADS) as pool:
        pairs = [pair for thread in pool.map(run, range(THREADS)) for pair in thread]
    return [result for _, result in sorted(pairs)]

"""Storage for tests: it passes on, writes down, and fails as told."""

import gc
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import StorageError
from penstock.io.file_io import FileIO
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.testing.file_io import Call, FailingFileIO, Fault, Operation, ProcessDiedError, RecordingFileIO
from penstock.testing.suites import FileIOSuite

CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


class TestRecordingFileIO(FileIOSuite):
    @pytest.fixture
    def file_io(self, request: pytest.FixtureRequest) -> Iterator[FileIO]:
        store = MemoryFileIO(request.node.nodeid)
        yield RecordingFileIO(store)
        store.discard()

    @pytest.fixture
    def root(self) -> str:
        return "memory://suite/root"


class TestFailingFileIOWithoutFault(FileIOSuite):
    @pytest.fixture
    def file_io(self) -> FileIO:
        return FailingFileIO(LocalFileIO())

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/root"


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[MemoryFileIO]:
    file_io = MemoryFileIO(request.node.nodeid)
    file_io.write("/old", b"old")
    file_io.write("/dir/file", b"old")
    yield file_io
    file_io.discard()


CALLS: list[tuple[Operation, Callable[[FileIO], object], Callable[[FileIO], bool]]] = [
    (Operation.WRITE, lambda io: io.write("/new", b"x"), lambda io: io.exists("/new")),
    (Operation.PUT_IF_ABSENT, lambda io: io.put_if_absent("/new", b"x"), lambda io: io.exists("/new")),
    (Operation.OPEN_OUTPUT, lambda io: io.open_output("/new"), lambda io: io.exists("/new")),
    (Operation.DELETE, lambda io: io.delete("/old"), lambda io: not io.exists("/old")),
    (Operation.RENAME_FILE, lambda io: io.rename_file("/old", "/new"), lambda io: io.exists("/new")),
    (Operation.RENAME_DIR, lambda io: io.rename_dir("/dir", "/new"), lambda io: io.exists("/new")),
]
QUESTIONS: list[tuple[Operation, Callable[[FileIO], object]]] = [
    (Operation.READ, lambda io: io.read("/old")),
    (Operation.OPEN_INPUT, lambda io: io.open_input("/old")),
    (Operation.LIST, lambda io: io.list("/")),
    (Operation.EXISTS, lambda io: io.exists("/old")),
]


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("operation", "call", "happened"), CALLS)
def test_the_chosen_call_fails_with_its_effect_or_without(
    store: MemoryFileIO,
    fault: Fault,
    operation: Operation,
    call: Callable[[FileIO], object],
    happened: Callable[[FileIO], bool],
) -> None:
    failing = FailingFileIO(store, fault, at=2)
    failing.exists("/old")
    with pytest.raises(ProcessDiedError if fault in CRASHES else StorageError):
        call(failing)
    assert happened(store) is (fault in {Fault.CRASH_AFTER, Fault.ANSWER_LOST})
    assert failing.calls[-1].operation == operation
    assert failing.call_count == 2


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("operation", "call"), QUESTIONS)
def test_questions_fail_too(
    store: MemoryFileIO, fault: Fault, operation: Operation, call: Callable[[FileIO], object]
) -> None:
    failing = FailingFileIO(store, fault, at=1)
    with pytest.raises(ProcessDiedError if fault in CRASHES else StorageError):
        call(failing)
    assert failing.calls[0].operation == operation


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.ANSWER_LOST])
def test_a_passing_failure_is_retryable_and_happens_once(store: MemoryFileIO, fault: Fault) -> None:
    failing = FailingFileIO(store, fault, at=1)
    with pytest.raises(StorageError, match=f"put_if_absent /new: call 1 was made to fail \\({fault}\\)") as caught:
        failing.put_if_absent("/new", b"ours")
    assert caught.value.retryable
    assert failing.put_if_absent("/new", b"again") is (fault is Fault.REFUSED)


@pytest.mark.parametrize("fault", CRASHES)
def test_a_dead_process_does_nothing_more(store: MemoryFileIO, fault: Fault) -> None:
    failing = FailingFileIO(store, fault, at=3)
    output = failing.open_output("/data")
    stream = failing.open_input("/old")
    with pytest.raises(ProcessDiedError):
        failing.read("/old")
    for call in [call for _, call, _ in CALLS] + [call for _, call in QUESTIONS]:
        with pytest.raises(ProcessDiedError):
            call(failing)
    for last in (lambda: output.write(b"x"), output.close, stream.read):
        with pytest.raises(ProcessDiedError):
            last()
    assert failing.is_dead
    assert failing.call_count == 3
    assert store.read("/data") == b""
    assert [status.name for status in store.list("/")] == ["data", "dir", "old"]


def test_no_handler_of_exceptions_stops_a_crash(store: MemoryFileIO) -> None:
    failing = FailingFileIO(store, Fault.CRASH_BEFORE, at=1)

    def careless() -> None:
        try:
            failing.read("/old")
        except Exception:  # noqa: BLE001 - the point of the test
            failing.write("/old", b"cleaned up")

    with pytest.raises(ProcessDiedError):
        careless()
    assert store.read("/old") == b"old"


def write_parquet(file_io: FileIO, path: str) -> None:
    with file_io.open_output(path) as output:
        pq.write_table(pa.table({"a": [1, 2, 3]}), output)


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("fault", Fault)
def test_every_call_of_a_parquet_writer_can_fail(tmp_path: Path, fault: Fault) -> None:
    counting = FailingFileIO(LocalFileIO())
    write_parquet(counting, f"{tmp_path}/clean")
    operations = [call.operation for call in counting.calls]
    assert operations[0] == Operation.OPEN_OUTPUT
    assert operations[-1] == Operation.STREAM_CLOSE
    assert set(operations[1:-1]) == {Operation.STREAM_WRITE}
    whole = (tmp_path / "clean").read_bytes()
    for at in range(1, counting.call_count + 1):
        failing = FailingFileIO(LocalFileIO(), fault, at)
        with pytest.raises(ProcessDiedError if fault in CRASHES else StorageError):
            write_parquet(failing, f"{tmp_path}/{at}")
        gc.collect()  # nothing writes when the streams are collected
        file = tmp_path / str(at)
        assert file.exists() is (at > 1 or fault in {Fault.CRASH_AFTER, Fault.ANSWER_LOST})
        if fault in CRASHES and file.exists():
            assert whole.startswith(file.read_bytes())
            assert (file.read_bytes() == whole) is (at >= counting.call_count - (fault is Fault.CRASH_AFTER))


def test_reading_parquet_counts_as_one_call(tmp_path: Path) -> None:
    write_parquet(LocalFileIO(), f"{tmp_path}/data")
    failing = FailingFileIO(LocalFileIO())
    with failing.open_input(f"{tmp_path}/data") as stream:
        assert pq.ParquetFile(stream).read().num_rows == 3
    assert failing.calls == (Call(Operation.OPEN_INPUT, f"{tmp_path}/data"),)


def test_the_log_answers_which_paths_were_touched(store: MemoryFileIO) -> None:
    recording = RecordingFileIO(store)
    recording.read("/old")
    recording.read("/dir/file")
    recording.list("/dir")
    with recording.open_output("/new") as output:
        output.write(b"x")
    assert recording.paths(Operation.READ) == ("/old", "/dir/file")
    assert recording.paths(Operation.READ, Operation.LIST, containing="dir") == ("/dir/file", "/dir")
    assert recording.paths(containing="new") == ("/new", "/new", "/new")
    assert [call.operation for call in recording.calls][-3:] == ["open_output", "stream_write", "stream_close"]
    recording.forget()
    assert recording.calls == ()


def test_a_pickled_copy_has_a_log_of_its_own(store: MemoryFileIO) -> None:
    recording = RecordingFileIO(store)
    recording.read("/old")
    copy = pickle.loads(pickle.dumps(recording))
    copy.read("/old")
    assert len(copy.calls) == 2
    assert len(recording.calls) == 1

"""Uploads in parts, and deletions of many objects, that a store refuses in the middle."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from tests.unit.io.object_store.scripted_store import ScriptedStore, Step

from penstock.errors import StorageError
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.object_store.file_io import ObjectFileIO

PATH = "s3://bucket/t/data"
MANY = 20_000_000
SECONDS = 10


@pytest.fixture
def store() -> Iterator[ScriptedStore]:
    with ScriptedStore() as server:
        yield server


@pytest.fixture
def file_io(store: ScriptedStore) -> ObjectFileIO:
    return resolve("s3://bucket/t", {**store.options, "penstock.object-store.max-retries": "3"})[0]  # type: ignore[return-value] # of S3


def outcome(file_io: ObjectFileIO, *, is_given_up: bool = False) -> BaseException | None:
    """Write a large object; return what is raised. It fails if that takes long."""
    raised: list[BaseException] = []

    def write() -> None:
        try:
            with file_io.open_output(PATH) as output:
                output.write(bytes(MANY))
                assert not is_given_up
        except BaseException as error:  # noqa: BLE001 - returned
            raised.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "the writer waits for ever"
    assert not [each for each in threading.enumerate() if each.name == "penstock-upload"]
    return raised[0] if raised else None


@pytest.mark.parametrize("refused", [Step.CREATE, Step.PART, Step.COMPLETE])
def test_an_upload_that_is_refused_is_an_error_and_is_aborted(
    store: ScriptedStore, file_io: ObjectFileIO, refused: Step
) -> None:
    store.refused = refused
    error = outcome(file_io)
    assert isinstance(error, StorageError)
    assert "cannot write s3://bucket/t/data: the store denies access (403 AccessDenied)" in str(error)
    assert (Step.ABORT in store.steps) is (refused is not Step.CREATE)


def test_an_upload_that_cannot_be_aborted_ends(store: ScriptedStore, file_io: ObjectFileIO) -> None:
    store.refused = Step.ABORT
    assert isinstance(outcome(file_io, is_given_up=True), AssertionError)
    assert Step.ABORT in store.steps


def test_an_upload_begins_after_the_store_has_answered(store: ScriptedStore, file_io: ObjectFileIO) -> None:
    store.busy = 5  # a store that does not answer is tried four times
    assert outcome(file_io) is None
    assert store.steps[-1] is Step.COMPLETE


def test_a_close_that_is_interrupted_gives_up_the_upload(
    store: ScriptedStore, file_io: ObjectFileIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = file_io.open_output(PATH)
    output.write(bytes(MANY))

    def interrupt(_rest: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output._upload, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        output.close()
    assert Step.ABORT in store.steps
    assert Step.COMPLETE not in store.steps


def test_objects_that_the_store_keeps_are_named_with_the_reason(store: ScriptedStore, file_io: ObjectFileIO) -> None:
    store.objects = {"t/a": b"1", "t/b": b"2"}
    store.kept.append("AccessDenied")
    with pytest.raises(StorageError, match=r"cannot delete .*: the store denies access \(AccessDenied\)") as error:
        file_io.delete_many(["s3://bucket/t/a", "s3://bucket/t/b"])
    assert not error.value.retryable
    assert "SECRET" not in str(error.value)


def test_objects_that_a_busy_store_keeps_are_deleted_by_another_request(
    store: ScriptedStore, file_io: ObjectFileIO
) -> None:
    store.objects = {"t/a": b"1", "t/b": b"2"}
    store.kept.extend(["SlowDown", "InternalError"])
    file_io.delete_many(["s3://bucket/t/a", "s3://bucket/t/b"])
    assert store.objects == {}


def test_objects_that_a_busy_store_keeps_for_long_are_an_error(store: ScriptedStore, file_io: ObjectFileIO) -> None:
    store.objects = {"t/a": b"1", "t/b": b"2"}
    store.kept.extend(["SlowDown"] * 20)
    with pytest.raises(StorageError, match="the store answers SlowDown") as error:
        file_io.delete_many(["s3://bucket/t/a", "s3://bucket/t/b"])
    assert error.value.retryable

"""One winner of a conditional put, whatever answers get lost, and no store that lets two win."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.io.object_store.scripted_store import Answer, Promise, ScriptedStore

from penstock.errors import StorageError, UnsupportedFeatureError
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.file_io import FileIO

PATH = "s3://bucket/t/snapshot/snapshot-1"
KEY = "t/snapshot/snapshot-1"


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedStore]:
    with ScriptedStore() as server:
        yield server


@pytest.fixture
def store(server: ScriptedStore) -> ScriptedStore:
    server.objects.clear()
    server.answers.clear()
    server.requests.clear()
    return server


@pytest.fixture
def file_io(store: ScriptedStore) -> FileIO:
    return file_io_of(store)


def file_io_of(store: ScriptedStore, retries: int = 3) -> FileIO:
    return resolve("s3://bucket/t", {**store.options, "penstock.object-store.max-retries": str(retries)})[0]


@pytest.mark.parametrize("answer", [Answer.LOST, Answer.DROPPED, Answer.BUSY, Answer.CONFLICT])
def test_a_put_whose_answer_is_lost_or_put_off_is_ours(store: ScriptedStore, file_io: FileIO, answer: Answer) -> None:
    store.answers.append(answer)
    assert file_io.put_if_absent(PATH, b"ours") is True
    assert store.objects[KEY] == b"ours"
    assert store.count("PUT", KEY) == 2


@pytest.mark.parametrize("table", ["customer_metadata", "credentials", "sts.db"])
def test_a_table_of_any_name_is_tried_again(store: ScriptedStore, file_io: FileIO, table: str) -> None:
    store.answers.extend([Answer.LOST, Answer.DROPPED])
    for number in (1, 2):
        assert file_io.put_if_absent(f"s3://bucket/{table}/snapshot/snapshot-{number}", b"ours") is True


def test_a_put_after_that_of_another_writer_is_lost(store: ScriptedStore, file_io: FileIO) -> None:
    store.objects[KEY] = b"theirs"
    assert file_io.put_if_absent(PATH, b"ours") is False
    assert store.count("PUT", KEY) == 1


@pytest.mark.parametrize("answer", [Answer.BUSY, Answer.CONFLICT, Answer.DROPPED, Answer.LOST])
def test_a_put_that_is_retried_after_that_of_another_writer_is_lost(
    store: ScriptedStore, file_io: FileIO, answer: Answer
) -> None:
    store.objects[KEY] = b"theirs"
    store.answers.append(answer)
    assert file_io.put_if_absent(PATH, b"ours") is False
    assert store.objects[KEY] == b"theirs"


def test_the_last_try_is_looked_up_too(store: ScriptedStore) -> None:
    store.answers.append(Answer.LOST)
    assert file_io_of(store, retries=0).put_if_absent(PATH, b"ours") is True
    assert store.count("PUT", KEY) == 1


def test_a_put_without_an_answer_may_still_succeed(store: ScriptedStore) -> None:
    store.answers.extend([Answer.BUSY] * 2)
    with pytest.raises(StorageError, match=r"cannot create .*: the store answers 503 SlowDown") as error:
        file_io_of(store, retries=1).put_if_absent(PATH, b"ours")
    assert error.value.retryable
    assert store.objects == {}


def test_a_refusal_is_reported_at_once_and_without_what_the_store_writes(store: ScriptedStore, file_io: FileIO) -> None:
    store.answers.append(Answer.DENIED)
    with pytest.raises(StorageError, match=r"denies access \(403 AccessDenied\)") as error:
        file_io.put_if_absent(PATH, b"ours")
    assert not error.value.retryable
    assert "SECRET" not in str(error.value)
    assert error.value.__cause__ is None
    assert store.count("PUT", KEY) == 1


@pytest.mark.parametrize("promise", [Promise.IGNORED, Promise.NOT_IN_A_RACE])
def test_a_store_that_lets_two_puts_land_is_refused(promise: Promise) -> None:
    with ScriptedStore(promise) as store:
        file_io = file_io_of(store)
        for _ in range(2):
            with pytest.raises(UnsupportedFeatureError, match=r"cannot hold tables: [2-8] conditional puts"):
                file_io.put_if_absent(PATH, b"ours")
        assert store.objects == {}


def test_a_store_without_conditional_puts_is_refused_at_once() -> None:
    with ScriptedStore(Promise.NOT_THERE) as store:
        file_io = file_io_of(store)
        with pytest.raises(UnsupportedFeatureError, match=r"refuses conditional puts \(If-None-Match: \*, 501\)"):
            file_io.put_if_absent(PATH, b"ours")
        assert store.objects == {}
        assert len([key for method, key in store.requests if method == "PUT"]) == 1


@pytest.mark.parametrize("value", ["disabled", "dynamo:table"])
def test_no_variable_of_the_environment_changes_how_commits_are_made(
    value: str, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", value)
    file_io, _ = resolve(
        "s3://bucket/t", {**store.options, "s3.region": value.partition(":")[0]}
    )  # a client of its own
    assert file_io.put_if_absent(PATH, b"ours") is True
    assert file_io.put_if_absent(PATH, b"theirs") is False


def test_a_store_that_is_busy_at_first_is_tried_as_long_as_the_options_say() -> None:
    for call in (lambda storage: storage.put_if_absent(PATH, b"ours"), lambda storage: storage.write(PATH, b"ours")):
        with ScriptedStore() as store:
            store.busy = 5  # a store that does not answer is tried four times
            call(file_io_of(store, retries=10))
            assert store.objects == {KEY: b"ours"}
            assert store.busy == 0


def test_a_store_is_tried_once_a_process() -> None:
    with ScriptedStore() as store:
        file_io = file_io_of(store)
        assert file_io.put_if_absent(PATH, b"ours")
        tried = [key for method, key in store.requests if method == "PUT" and ".penstock-probe-" in key]
        assert len(tried) == 2 + 8 * 8
        assert len(set(tried)) == 9
        assert all(key.startswith("t/snapshot/.penstock-probe-") for key in tried)
        assert store.objects == {KEY: b"ours"}
        store.requests.clear()
        assert file_io.put_if_absent(f"{PATH}0", b"ours")
        assert store.requests == [("PUT", f"{KEY}0")]

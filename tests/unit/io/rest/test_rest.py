"""What a server may answer, one request after the other; tests/interop/test_rest_catalog.py asks a real one."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.loopback_server import Handler, LoopbackServer
from tests.support.counted_requests import memory_store

import penstock
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NotFoundError,
    OptionWarning,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
)
from penstock.io.memory import MemoryFileIO
from penstock.io.object_store.file_io import settings_of
from penstock.io.rest.server import RestServer, _session
from penstock.io.rest.table import RestTableFileIO
from penstock.options.external import is_of_user
from penstock.options.status.keys import KNOWN_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Scripted(Handler):
    """Gives the answers of the server's list; an answer is a status, a body and headers, or None to hang up."""

    def answer(self) -> None:
        data = self.body()
        self.owner.requests.append((self.command, self.path, self.headers.get("Authorization"), data))
        self.owner.connections.add(self.client_address)
        script = self.owner.answers
        step = script.pop(0) if script else (500, {"message": "no more answers"}, {})
        if step is None:
            self.end()
            return
        status, body, headers = step
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        payload = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for key, value in {"Content-Length": str(len(payload)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 - names of the standard library


class ScriptedServer(LoopbackServer):
    def __init__(self) -> None:
        super().__init__(Scripted)
        self.answers: list[tuple[int, Any, dict[str, str]] | None] = []
        self.requests: list[tuple[str, str, str | None, bytes]] = []
        self.connections: set[tuple[str, int]] = set()

    def will(self, *answers: tuple[int, Any] | None) -> None:
        self.answers += [None if each is None else (each[0], each[1], {"Retry-After": "0"}) for each in answers]


@pytest.fixture(autouse=True)
def without_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("penstock.io.rest.server._WAIT_SECONDS", 0)
    _session.cache_clear()
    yield
    _session.cache_clear()


@pytest.fixture
def http() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def rest(http: ScriptedServer) -> RestServer:
    return RestServer(uri=http.url, prefix="lake/x", headers=(("Authorization", "Bearer secret"),))


def table(http: ScriptedServer) -> RestTableFileIO:
    return RestTableFileIO(
        inner=MemoryFileIO("rest-test"),
        server=rest(http),
        database="d",
        table="t$x",
        table_id="an-id",
        location="memory://rest-test/t",
    )


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (400, InvalidOptionError, "rejects"),
        (401, StorageError, "token"),
        (403, StorageError, "permission"),
        (404, NotFoundError, "no such table"),
        (409, AlreadyExistsError, "taken"),
        (418, StorageError, "option 'uri'"),
        (500, StorageError, "failed or is busy"),
        (501, UnsupportedFeatureError, "does not support that"),
    ],
)
def test_each_status_is_one_error_that_names_server_table_cause_and_cure(
    http: ScriptedServer, status: int, kind: type[Exception], text: str
) -> None:
    http.will((status, {"message": "because", "resourceType": "TABLE", "code": status}))
    with pytest.raises(kind, match=f"table d.t: the REST catalog at {http.url} answered {status} .because.: .*{text}"):
        rest(http).post("databases", "d", "tables", about="table d.t", body={})
    assert len(http.requests) == 1


def test_names_are_escaped_and_the_token_is_sent_but_not_shown(http: ScriptedServer) -> None:
    http.will((200, {}))
    rest(http).get("databases", "a/b ü$", about="it")
    method, path, token, _ = http.requests[0]
    assert (method, path, token) == ("GET", "/v1/lake/x/databases/a%2Fb%20%C3%BC%24", "Bearer secret")
    assert "secret" not in repr(rest(http))
    assert pickle.loads(pickle.dumps(table(http))) == table(http)


def test_all_pages_are_listed(http: ScriptedServer) -> None:
    http.will((200, {"tables": ["a"], "nextPageToken": "a"}), (200, {"tables": ["b"], "nextPageToken": None}))
    assert list(rest(http).names("databases", "d", "tables", key="tables", about="it")) == ["a", "b"]
    assert "pageToken=a" in http.requests[1][1]


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(http: ScriptedServer, status: int) -> None:
    http.will((status, {}), (status, {}), (200, {"success": True}))
    assert rest(http).post("commit", about="it", body={}) == {"success": True}
    assert len(http.requests) == 3


def test_a_busy_server_is_not_asked_forever(http: ScriptedServer) -> None:
    http.will(*[(503, {"message": "busy"})] * 20)
    with pytest.raises(StorageError, match=r"answered 503 .busy.") as caught:
        rest(http).get("x", about="it")
    assert caught.value.retryable
    assert len(http.requests) == 6


def test_only_requests_that_change_nothing_are_sent_again_after_a_lost_answer(http: ScriptedServer) -> None:
    http.will(None, (200, {"is": "there"}), None)
    assert rest(http).get("x", about="it") == {"is": "there"}
    with pytest.raises(StorageError, match="did not answer") as caught:
        rest(http).post("x", about="it", body={})
    assert caught.value.retryable
    assert len(http.requests) == 3


HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1.5, "", "x", "\u202e\n", [], [1], [None], [[]], {}, {"a": None}, {"id": "x"},
    {"snapshot": []},
)  # fmt: skip
CALLS: dict[str, tuple[tuple[str, ...], Callable[[penstock.Catalog], object]]] = {
    "list_databases": (("databases",), lambda catalog: catalog.list_databases()),
    "list_tables": (("tables",), lambda catalog: catalog.list_tables("d")),
    "list_views": (("views",), lambda catalog: catalog.list_views("d")),
    "load_view": (("schema",), lambda catalog: catalog.load_view("d.v")),
    "view_query": (("schema", "query"), lambda catalog: catalog.load_view("d.v")),
    "view_fields": (("schema", "fields"), lambda catalog: catalog.load_view("d.v")),
    "view_dialects": (("schema", "dialects"), lambda catalog: catalog.load_view("d.v")),
    "view_options": (("schema", "options"), lambda catalog: catalog.load_view("d.v")),
    "view_comment": (("schema", "comment"), lambda catalog: catalog.load_view("d.v")),
    "table_path": (("path",), lambda catalog: catalog.load_table("d.t")),
    "table_schema": (("schemaId",), lambda catalog: catalog.load_table("d.t")),
}
GOOD: dict[str, Any] = {"path": "/nowhere/t", "schemaId": 0, "schema": {"query": "SELECT 1", "fields": []}}


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_with_any_value_of_the_wrong_type_is_one_of_our_errors(http: ScriptedServer, call: str) -> None:
    (*parents, key), run = CALLS[call]
    http.will((200, {}))
    catalog = penstock.Catalog("w", {"metastore": "rest", "uri": http.url})
    for value in HOSTILE_VALUES:
        answer = json.loads(json.dumps(GOOD))
        place = answer
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
        http.will((200, answer))
        with suppress(TableStoreError):  # others fail the test
            run(catalog)
        assert not http.answers


@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=repr)
def test_a_commit_takes_no_answer_of_the_wrong_type(http: ScriptedServer, value: object) -> None:
    storage = table(http)
    http.will((200, {"snapshot": value}), (200, {"success": value}))
    with pytest.raises(StorageError, match="named no snapshot"):
        storage.latest_snapshot_id()
    if not isinstance(value, bool):
        with pytest.raises(StorageError, match="did not say"):
            storage.commit(b"{}", None, [])


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("[" * 200_000, "not an answer of a Paimon REST catalog"),
        ('{"a":' * 200_000, "not an answer of a Paimon REST catalog"),
        ('{"databases": ' + "[" * 301 + "]" * 301 + "}", "not an answer of a Paimon REST catalog"),
        ('{"databases": ["' + "x" * 5_000 + '"]}', "more than 4096 bytes.*'penstock.metadata.max-answer-size'"),
        ({"message": "x" * 4_000}, "something other than names|databases"),
        ('{"a": NaN}', "not an answer"),
        ('{"a": ' + "9" * 4_000 + "}", ""),
        (b"\xff{}".decode("latin1"), "not an answer"),
    ],
    ids=["list", "object", "301", "size", "message", "nan", "digits", "bytes"],
)
def test_an_answer_without_bounds_is_one_error(http: ScriptedServer, answer: object, text: str) -> None:
    http.will((200, {}), (200, answer))
    options = {"metastore": "rest", "uri": http.url, "penstock.metadata.max-answer-size": "4 kb"}
    if len(str(answer)) > 100_000:
        del options["penstock.metadata.max-answer-size"]
    catalog = penstock.Catalog("w", options)
    if "digits" in text or text in {"", "something other than names|databases"}:
        assert catalog.list_databases() == ()
        return
    with pytest.raises(StorageError, match=text) as caught:
        catalog.list_databases()
    assert len(str(caught.value)) < 1_000


def test_a_compressed_answer_is_bounded_too(http: ScriptedServer) -> None:
    http.answers += [
        (200, {}, {}),
        (200, gzip.compress(b'{"databases": ["' + b"x" * (64 << 20)), {"Content-Encoding": "gzip"}),
    ]
    catalog = penstock.Catalog("w", {"metastore": "rest", "uri": http.url})
    with pytest.raises(StorageError, match="more than 33554432 bytes"):
        catalog.list_databases()


def test_pages_without_end_are_an_error(http: ScriptedServer) -> None:
    http.will((200, {}), *[(200, {"databases": ["d"], "nextPageToken": f"t{number}"}) for number in range(4)])
    options = {"metastore": "rest", "uri": http.url, "penstock.metadata.max-pages": "3"}
    catalog = penstock.Catalog("w", options)
    with pytest.raises(StorageError, match=r"more than 3 pages of names.*'penstock.metadata.max-pages'"):
        catalog.list_databases()
    assert len(http.answers) == 1


@pytest.mark.parametrize("key", [key for key in KNOWN_KEYS if is_of_user(key)])
@pytest.mark.parametrize("kind", ["defaults", "overrides"])
def test_a_server_sets_no_option_that_is_the_users(http: ScriptedServer, key: str, kind: str) -> None:
    http.will((200, {kind: {key: "/", "table-default.bucket": "2"}}))
    with pytest.warns(OptionWarning, match=f"{http.url} sets .*{key}.* only the user"):
        catalog = penstock.Catalog("w", {"metastore": "rest", "uri": http.url})
    warehouse = catalog._warehouse
    assert key not in dict(warehouse.options)
    assert dict(warehouse.options)["table-default.bucket"] == "2"
    assert warehouse.use_options == ()


def test_the_users_options_stay_what_they_are_whatever_the_server_says(http: ScriptedServer) -> None:
    own = {"penstock.external-paths.read": "/mine", "penstock.durable": "true", "penstock.views": "false"}
    http.will((200, {"overrides": dict.fromkeys(own, "/")}))
    with pytest.warns(OptionWarning):
        catalog = penstock.Catalog("w", {"metastore": "rest", "uri": http.url, **own})
    assert own.items() <= dict(catalog._warehouse.options).items()


def test_keys_to_files_are_the_only_options_that_a_table_of_a_server_brings(http: ScriptedServer) -> None:
    http.will((200, {"defaults": {"data-token.enabled": "true"}}))
    catalog = penstock.Catalog("w", {"metastore": "rest", "uri": http.url})
    http.will((200, {}))
    answers: list[tuple[int, Any, dict[str, str]] | None] = [
        (200, {"path": "s3://b/t", "schemaId": 0, "schema": {"options": {"penstock.external-paths.read": "/"}}}, {}),
        (200, {"token": {"s3.endpoint": "http://127.0.0.1:1", "penstock.object-store.timeout": "1 d"}}, {}),
    ]
    http.answers[:] = answers
    options = {"penstock.object-store.max-retries": "0", "penstock.object-store.retry-timeout": "10 ms"}
    catalog._warehouse = replace(
        catalog._warehouse,
        options=(*catalog._warehouse.options, *options.items(), ("s3.access-key", "a"), ("s3.secret-key", "b")),
    )
    with pytest.warns(OptionWarning, match="object-store.timeout"), pytest.raises(StorageError):
        catalog.load_table("d.t")


def test_a_server_without_a_rest_catalog_is_reported(http: ScriptedServer) -> None:
    http.will((200, "<html>hello</html>"), (302, ""))
    for status in (200, 302):
        with pytest.raises(StorageError, match=rf"answered {status}.*not an answer of a Paimon REST catalog.*'uri'"):
            rest(http).get("config", about="warehouse 'w'")


def test_a_server_that_is_not_there_is_one_error() -> None:
    with pytest.raises(StorageError, match=r"warehouse 'w': the REST catalog at http://127.0.0.1:1 did not answer"):
        penstock.Catalog("w", {"metastore": "rest", "uri": "127.0.0.1:1"})


def test_the_configuration_of_the_server_is_merged(http: ScriptedServer) -> None:
    config = {"defaults": {"prefix": "p", "table-default.file.format": "orc"}, "overrides": {"header.X-It": "1"}}
    http.will((200, config), (200, {"databases": ["b", "a"]}))
    options = {"metastore": "rest", "uri": f"{http.url}/", "token": "secret"}
    catalog = penstock.Catalog("w", options)
    assert catalog.list_databases() == ("a", "b")
    assert [path.partition("?")[0] for _, path, _, _ in http.requests] == ["/v1/config", "/v1/p/databases"]
    assert "warehouse=w" in http.requests[0][1]
    assert "secret" not in repr(catalog)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"metastore": "rest"}, InvalidOptionError, "'uri'"),
        ({"metastore": "rest", "uri": "ftp://x"}, InvalidOptionError, "'uri'"),
        ({"metastore": "rest", "uri": "http://user:pass@x"}, InvalidOptionError, "'token'"),
        ({"metastore": "rest", "uri": "http://x", "token.provider": "dlf"}, UnsupportedFeatureError, "dlf"),
        ({"metastore": "rest", "uri": "http://x", "token.provider": "bear"}, InvalidOptionError, "token"),
        ({"metastore": "rest", "uri": "http://x", "token": "a\nb"}, InvalidOptionError, "token"),
        ({"metastore": "rest", "uri": "http://x", "header.X-It": "hush\n"}, InvalidOptionError, "header.X-It"),
        ({"metastore": "hive", "uri": "thrift://x"}, UnsupportedFeatureError, "hive"),
    ],
)
def test_options_are_checked_before_anything_is_sent(options: dict[str, str], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as error:
        penstock.Catalog("w", options)
    assert "hush" not in str(error.value)


def test_headers_are_not_shown(http: ScriptedServer) -> None:
    http.will((200, {}))
    options = {"metastore": "rest", "uri": http.url, "header.Authorization": "Basic secret"}
    catalog = penstock.Catalog("w", options)
    assert http.requests[0][2] == "Basic secret"
    assert "secret" not in repr(catalog)


def test_a_certificate_that_is_not_trusted_is_one_error(http: ScriptedServer) -> None:
    with pytest.raises(StorageError, match=r"did not answer .*SSL"):  # this server knows no TLS
        penstock.Catalog("w", {"metastore": "rest", "uri": http.url.replace("http:", "https:")})


def test_a_server_does_not_decide_for_how_long_one_waits(http: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.io.rest.server._MAX_WAIT_SECONDS", 1)
    http.answers += [(503, {}, {"Retry-After": "3600"}), (200, {"is": "there"}, {})]
    began = time.monotonic()
    assert rest(http).get("x", about="it") == {"is": "there"}
    assert 0.9 < time.monotonic() - began < 30


def test_a_forked_process_has_connections_of_its_own(http: ScriptedServer) -> None:
    http.will(*[(200, {"is": "there"})] * 2)
    rest(http).get("x", about="it")
    process_id = os.fork()
    if process_id == 0:  # no test may go on here
        is_right = False
        try:
            is_right = rest(http).get("x", about="it") == {"is": "there"}
        finally:
            os._exit(0 if is_right else 1)
    _, status = os.waitpid(process_id, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(http.connections) == 2


def test_files_of_a_table_on_a_store_are_opened_with_its_settings() -> None:
    store = memory_store(f"rest-{uuid.uuid4()}")
    root = store.settings.address.root
    server = RestServer(uri="http://127.0.0.1:1")
    storage = RestTableFileIO(inner=store, server=server, database="d", table="t", table_id="1", location=f"{root}/t")
    assert settings_of(storage) == store.settings
    assert not storage.is_object_store  # the server decides about commits
    assert storage.parallel_calls == store.parallel_calls > 8
    assert not storage.has_directories


def test_a_commit_says_what_it_is_based_on(http: ScriptedServer) -> None:
    http.will((200, {"success": True}), (200, {"success": False}), (200, {}), (404, {"resourceType": "TABLE"}))
    storage = table(http)
    assert storage.commit(b'{"id": 3}', "base", [{"recordCount": 1}])
    assert not storage.commit(b'{"id": 3}', "base", [])
    with pytest.raises(StorageError, match="did not say"):
        storage.commit(b'{"id": 3}', None, [])
    with pytest.raises(StorageError, match="no such table") as caught:
        storage.commit(b'{"id": 3}', None, [])
    assert not caught.value.retryable
    assert http.requests[0][1] == "/v1/lake/x/databases/d/tables/t%24x/commit"
    assert json.loads(http.requests[0][3]) == {
        "tableId": "an-id",
        "baseSnapshotUuid": "base",
        "snapshot": {"id": 3},
        "statistics": [{"recordCount": 1}],
    }


def test_the_hint_is_what_the_server_says_and_snapshots_are_its_own(http: ScriptedServer) -> None:
    storage = table(http)
    hint, snapshot = f"{storage.location}/snapshot/LATEST", f"{storage.location}/snapshot/snapshot-7"
    http.will((404, {"resourceType": "SNAPSHOT"}), (200, {"snapshot": {"snapshot": {"id": 7}}}))
    with pytest.raises(NotFoundError):
        storage.read(hint)
    assert storage.read(hint) == b"7"
    storage.write(hint, b"9")
    assert not storage.inner.exists(hint)
    for path, text in [(snapshot, "roll back"), ("schema/schema-1", "alter_table"), ("branch/branch-b/x", "branches")]:
        full = path if "://" in path else f"{storage.location}/{path}"
        with pytest.raises(UnsupportedFeatureError, match=rf"table d\.t\$x.*{text}"):
            storage.put_if_absent(full, b"")
    http.will((200, {"snapshot": {"snapshot": {"id": 7}}}), (200, {"snapshot": {"snapshot": {"id": 8}}}))
    storage.inner.write(snapshot, b"{}")
    with pytest.raises(StorageError, match="decides which snapshot is the latest"):
        storage.delete(snapshot)
    assert storage.delete(snapshot)

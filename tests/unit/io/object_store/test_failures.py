"""What is said when a store refuses or is not there: one error, within ten seconds, that names the cause."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.faults.store.faulty_proxy import Faults, FaultyProxy
from tests.s3_server import S3Bucket, free_port

from penstock import Catalog, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

SECRET = "SECRET-OF-THE-TEST"  # noqa: S105 - of a server that takes any
# Ten are promised on a machine that is not busy; without a limit of ours a request is retried for two minutes.
MOST_SECONDS = 40.0


class Refusing:
    """A server that answers every request with the same refusal."""

    def __init__(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode()
        handler = type("Handler", (_Handler,), {"status": status, "body": body})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    status: int
    body: bytes

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()


@dataclass(frozen=True, slots=True)
class Case:
    """A store that refuses.

    Attributes:
        said: what the error says, apart from the location.
    """

    name: str
    said: str
    status: int = 0
    code: str = ""


REFUSALS = [
    Case("wrong key", r"the store denies access \(403 InvalidAccessKeyId\); check the keys", 403, "InvalidAccessKeyId"),
    Case("wrong secret", r"the store denies access \(403 SignatureDoesNotMatch\)", 403, "SignatureDoesNotMatch"),
    Case(
        "no permission", r"the store denies access \(403 AccessDenied\); check .* in bucket 'lake'", 403, "AccessDenied"
    ),
    Case("no such bucket", r"there is no bucket 'lake' \(404 NoSuchBucket\); create it", 404, "NoSuchBucket"),
    Case("expired token", r"the keys have expired \(400 ExpiredToken\); get new ones", 400, "ExpiredToken"),
    Case("a token that is none", r"the store denies access \(400 InvalidToken\)", 400, "InvalidToken"),
    Case(
        "another region",
        r"the bucket 'lake' is in another region; give the catalog 's3.region'",
        301,
        "PermanentRedirect",
    ),
]
OPERATIONS: dict[str, Callable[[Catalog], object]] = {
    "list": lambda catalog: catalog.list_databases(),
    "load": lambda catalog: catalog.load_table("db.t"),
    "create": lambda catalog: catalog.create_database("db"),
}


def options_of(url: str) -> dict[str, str]:
    return {"s3.endpoint": url, "s3.access-key": "key", "s3.secret-key": SECRET}


def check(operation: Callable[[], object], case: Case) -> None:
    started = time.monotonic()
    with pytest.raises(StorageError, match=case.said) as failure:
        operation()
    assert time.monotonic() - started < MOST_SECONDS
    assert SECRET not in f"{failure.value!r}"
    assert len(str(failure.value)) < 400


@pytest.fixture(params=REFUSALS, ids=lambda case: case.name)
def refused(request: pytest.FixtureRequest) -> Iterator[tuple[Case, str]]:
    case: Case = request.param
    server = Refusing(case.status, case.code)
    yield case, server.url
    server.close()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_refusal_is_one_error(refused: tuple[Case, str], name: str) -> None:
    case, url = refused
    catalog = Catalog("s3://lake/warehouse", options_of(url))
    check(lambda: OPERATIONS[name](catalog), case)


def test_a_table_of_a_store_that_went_away_says_so(s3_bucket: S3Bucket) -> None:
    catalog = Catalog(f"{s3_bucket.root}/away", s3_bucket.options)
    catalog.create_database("db")
    location = catalog.create_table("db.t", "id BIGINT").location
    away = Catalog(catalog.warehouse, {**s3_bucket.options, "s3.endpoint": f"http://127.0.0.1:{free_port()}"})
    check(lambda: away.load_table(location).append(pa.table({"id": [1]})), Case("", "the store does not answer"))


class Forbidding(FaultyProxy):
    """A proxy before a store at which everything is allowed but to write paths with a word in them."""

    def __init__(self, url: str, word: str) -> None:
        super().__init__(url, Faults(busy=0.0, lost=0.0, delay_seconds=0.0))
        self.word = word

    def refusal(self, command: str, path: str, _headers: Message) -> bytes | None:
        is_refused = command in {"PUT", "POST"} and self.word in path and "?delete" not in path
        return f"<Error><Code>AccessDenied</Code><Message>{SECRET}</Message></Error>".encode() if is_refused else None


@pytest.mark.parametrize("word", ["/bucket-0/", "/manifest/", "/snapshot/snapshot-"])
def test_a_refused_append_writes_no_file(s3_bucket: S3Bucket, word: str) -> None:
    catalog = Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", s3_bucket.options)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(pa.table({"id": [1]}))
    before = files_of(s3_bucket, table.location)
    with Forbidding(s3_bucket.url, word) as proxy:
        refused = Catalog(catalog.warehouse, {**s3_bucket.options, "s3.endpoint": proxy.url}).load_table("db.t")
        check(lambda: refused.append(pa.table({"id": [2]})), Case("", r"the store denies access \(403 AccessDenied\)"))
    assert files_of(s3_bucket, table.location) == before
    assert table.to_arrow()["id"].to_pylist() == [1]


def files_of(bucket: S3Bucket, location: str) -> list[str]:
    """List the files of a table, at any depth, without the directories."""
    found = []
    for status in bucket.file_io.list(location):
        found += files_of(bucket, status.path) if status.is_dir else [status.path]
    return sorted(found)

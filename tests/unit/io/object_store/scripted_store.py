"""A server that speaks a little S3 and fails as it is told."""

from __future__ import annotations

import re
import time
from collections import deque
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote, urlsplit

from tests.loopback_server import Handler, LoopbackServer


class Answer(StrEnum):
    """What happens to one put."""

    LOST = "stored, and the connection ends without an answer"
    DROPPED = "not stored, and the connection ends without an answer"
    BUSY = "503 SlowDown"
    CONFLICT = "409 ConditionalRequestConflict"
    DENIED = "403 AccessDenied"


class Promise(StrEnum):
    """What a conditional put is worth."""

    KEPT = "kept"
    IGNORED = "the condition is not read"
    NOT_IN_A_RACE = "looked up first, stored a moment later"


_REFUSALS = {
    Answer.BUSY: (503, "SlowDown"),
    Answer.CONFLICT: (409, "ConditionalRequestConflict"),
    Answer.DENIED: (403, "AccessDenied"),
}


class ScriptedStore(LoopbackServer):
    """The server; a context manager.

    Attributes:
        answers: to the next puts of names without the probe's prefix, in order; then they succeed.
        requests: methods and keys of all requests.
    """

    def __init__(self, promise: Promise = Promise.KEPT) -> None:
        super().__init__(_Handler)
        self.promise = promise
        self.answers: deque[Answer] = deque()
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []

    @property
    def options(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.url,
            "s3.access-key": "any",
            "s3.secret-key": "SECRET-OF-THE-TEST",
        }

    def count(self, method: str, key: str) -> int:
        return sum(request == (method, key) for request in self.requests)


class _Handler(Handler, BaseHTTPRequestHandler):
    owner: ScriptedStore

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Sun, 22 Nov 2026 12:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>SECRET-OF-THE-STORE</Message></Error>".encode())

    def key(self) -> str:
        key = unquote(urlsplit(self.path).path).removeprefix("/bucket").lstrip("/")
        self.owner.requests.append((self.command, key))
        return key

    def do_GET(self) -> None:
        data = self.owner.objects.get(self.key())
        if data is None:
            self.refuse(404, "NoSuchKey")
        else:
            self.answer(200, data)

    def do_POST(self) -> None:
        self.key()
        names = re.findall(r"<Key>([^<]*)</Key>", self.body().decode())
        for name in names:
            self.owner.objects.pop(unquote(name), None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def do_PUT(self) -> None:
        key, data = self.key(), self.body()
        is_probe = ".penstock-probe-" in key
        answer = self.owner.answers.popleft() if self.owner.answers and not is_probe else None
        if answer in _REFUSALS:
            self.refuse(*_REFUSALS[answer])
        elif answer is Answer.DROPPED:
            self.end()
        elif not self.put(key, data):
            self.refuse(412, "PreconditionFailed")
        elif answer is Answer.LOST:
            self.end()
        else:
            self.answer(200)

    def put(self, key: str, data: bytes) -> bool:
        is_conditional = self.headers.get("If-None-Match") == "*" and self.owner.promise is not Promise.IGNORED
        if self.owner.promise is Promise.NOT_IN_A_RACE:
            is_there = key in self.owner.objects
            time.sleep(0.01)
            if is_conditional and is_there:
                return False
            self.owner.objects[key] = data
            return True
        with self.owner.lock:
            if is_conditional and key in self.owner.objects:
                return False
            self.owner.objects[key] = data
            return True

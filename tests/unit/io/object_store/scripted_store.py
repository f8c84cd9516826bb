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
    NOT_THERE = "501 NotImplemented"


class Step(StrEnum):
    """A request of an upload in parts."""

    CREATE = "create"
    PART = "part"
    COMPLETE = "complete"
    ABORT = "abort"


_REFUSALS = {
    Answer.BUSY: (503, "SlowDown"),
    Answer.CONFLICT: (409, "ConditionalRequestConflict"),
    Answer.DENIED: (403, "AccessDenied"),
}


class ScriptedStore(LoopbackServer):
    """The server; a context manager.

    Attributes:
        answers: to the next puts of names without the probe's prefix, in order; then they succeed.
        busy: how many of the next requests are answered by 503 SlowDown.
        kept: codes with which the next requests to delete many objects say that the first one is still there.
        refused: step of uploads in parts that is answered by 403; of parts, all after the first.
        requests: methods and keys of all requests.
        steps: of uploads in parts.
    """

    def __init__(self, promise: Promise = Promise.KEPT) -> None:
        super().__init__(_Handler)
        self.promise = promise
        self.answers: deque[Answer] = deque()
        self.objects: dict[str, bytes] = {}
        self.busy = 0
        self.kept: deque[str] = deque()
        self.refused: Step | None = None
        self.requests: list[tuple[str, str]] = []
        self.steps: list[Step] = []

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

    def is_put_off(self) -> bool:
        with self.owner.lock:
            is_busy = self.owner.busy > 0
            self.owner.busy -= is_busy
        if is_busy:
            self.body()
            self.key()
            self.refuse(503, "SlowDown")
        return is_busy

    def step(self) -> bool:
        """Answer a step of an upload in parts; return False if the request is none."""
        query = urlsplit(self.path).query
        if "uploads" not in query and "uploadId" not in query:
            return False
        self.body()
        by_method = {"PUT": Step.PART, "DELETE": Step.ABORT}
        step = by_method.get(self.command, Step.CREATE if query.startswith("uploads") else Step.COMPLETE)
        with self.owner.lock:
            is_refused = step is self.owner.refused and (step is not Step.PART or step in self.owner.steps)
            self.owner.steps.append(step)
        if is_refused:
            self.refuse(403, "AccessDenied")
        elif step is Step.CREATE:
            self.answer(200, b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
        elif step is Step.COMPLETE:
            body = b'<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>'
            self.answer(200, body)
        else:
            self.answer(204 if step is Step.ABORT else 200)
        return True

    def do_GET(self) -> None:
        if self.is_put_off():
            return
        data = self.owner.objects.get(self.key())
        if data is None:
            self.refuse(404, "NoSuchKey")
        else:
            self.answer(200, data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.step()

    def do_POST(self) -> None:
        if self.step():
            return
        self.key()
        names = re.findall(r"<Key>([^<]*)</Key>", self.body().decode())
        kept = ""
        if self.owner.kept:
            code, name = self.owner.kept.popleft(), names.pop(0)
            kept = f"<Error><Key>{name}</Key><Code>{code}</Code><Message>SECRET-OF-THE-STORE</Message></Error>"
        for name in names:
            self.owner.objects.pop(unquote(name), None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        self.answer(200, f"<DeleteResult>{deleted}{kept}</DeleteResult>".encode())

    def do_PUT(self) -> None:
        if self.is_put_off() or self.step():
            return
        key, data = self.key(), self.body()
        is_probe = ".penstock-probe-" in key
        answer = self.owner.answers.popleft() if self.owner.answers and not is_probe else None
        if answer in _REFUSALS:
            self.refuse(*_REFUSALS[answer])
        elif self.owner.promise is Promise.NOT_THERE and "If-None-Match" in self.headers:
            self.refuse(501, "NotImplemented")
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

"""A proxy before an S3 server that is slow, refuses some requests with 503, and loses some answers."""

from __future__ import annotations

import http.client
import random
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.loopback_server import Handler, LoopbackServer

if TYPE_CHECKING:
    from email.message import Message

_OF_ONE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong, as parts of all requests.

    Attributes:
        lost: the request is done, and the connection ends without an answer.
    """

    busy: float = 0.05
    lost: float = 0.05
    delay_seconds: float = 0.05


class FaultyProxy(LoopbackServer):
    """The proxy; a context manager.

    Attributes:
        counts: of requests, and of what went wrong.
        connections: open ones; a request of a killed process is carried out before its connection ends.
    """

    def __init__(self, url: str, faults: Faults, address: str = "127.0.0.1") -> None:
        super().__init__(_Handler, address)
        self.target = urlsplit(url).netloc
        self.faults = faults
        self.counts: Counter[str] = Counter()
        self.connections = 0
        self.chance = random.Random(14)  # noqa: S311 - no secret

    def refusal(self, _command: str, _path: str, _headers: Message) -> bytes | None:
        """Return the body of a 403 for a request that is not allowed; None where it is."""
        return None

    def changed(self, _path: str, headers: dict[str, str], data: bytes) -> tuple[dict[str, str], bytes]:
        """Return an answer of the server in the form in which the client gets it."""
        return headers, data

    def draw(self) -> str:
        with self.lock:
            drawn, faults = self.chance.random(), self.faults
            outcome = "busy" if drawn < faults.busy else "lost" if drawn < faults.busy + faults.lost else "done"
            self.counts[outcome] += 1
            return outcome


class _Handler(Handler, BaseHTTPRequestHandler):
    owner: FaultyProxy

    def handle(self) -> None:
        with self.owner.lock:
            self.owner.connections += 1
        try:
            super().handle()
        except ConnectionError:  # the process at the other end was killed
            self.close_connection = True
        finally:
            with self.owner.lock:
                self.owner.connections -= 1

    def do_GET(self) -> None:
        body = self.body()
        time.sleep(self.owner.faults.delay_seconds)
        refusal = self.owner.refusal(self.command, self.path, self.headers)
        if refusal is not None:
            self.answer(403, {}, refusal)
            return
        outcome = self.owner.draw()
        if outcome == "busy":
            self.answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        status, headers, data = self.forward(body)
        if outcome == "lost":
            self.end()
        else:
            self.answer(status, headers, data)

    def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.owner.target, timeout=60)
        try:
            headers = {key: value for key, value in self.headers.items() if key.lower() not in _OF_ONE_CONNECTION}
            connection.request(self.command, self.path, body or None, {**headers, "Content-Length": str(len(body))})
            response = connection.getresponse()
            return response.status, *self.owner.changed(self.path, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            if key.lower() not in _OF_ONE_CONNECTION:
                self.send_header(key, value)
        stated = {key.lower(): value for key, value in headers.items()}.get("content-length")
        self.send_header("Content-Length", stated if self.command == "HEAD" and stated else str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

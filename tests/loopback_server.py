"""An HTTP server of a test, on loopback, in threads of this process."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType


class LoopbackServer:
    """The server; a context manager.

    Args:
        handler: answers its requests; gets the attribute ``owner``, which is this object.
        address: of this machine.

    Attributes:
        lock: for what requests of several threads change.
    """

    def __init__(self, handler: type[Handler], address: str = "127.0.0.1") -> None:
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer((address, 0), type("Handler", (handler,), {"owner": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self._server.server_address[:2])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers requests over connections that stay, and writes no log."""

    owner: Any
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: Any) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def end(self) -> None:
        """End the connection without an answer."""
        self.close_connection = True
        self.connection.close()

"""Run moto's S3 server on this machine: ``moto_server.py PORT [ADDRESS]``.

Of concurrent conditional puts to the same key, only one may succeed. moto checks whether the object exists and then
stores it, without a lock, so on a busy machine two puts to one key can succeed. Here conditional puts run one after
another.

moto's own program looks for the service of each request among the modules of all services, and opens a connection and a
thread for each request. Here there is S3 alone, on a server that keeps connections open: a put or a get takes 1.7 ms
instead of 4 to 5.
"""

import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from waitress import serve

THREADS = 16


class ConditionalPutsInTurn:
    """A WSGI application that passes conditional puts on to another one, one at a time."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        environ["RAW_URI"] = environ["REQUEST_URI"]  # where moto looks for it
        if "HTTP_IF_NONE_MATCH" not in environ:
            answer: Iterable[bytes] = self._application(environ, start_response)
            return answer
        with self._lock:
            return list(self._application(environ, start_response))


def main() -> None:
    """Serve until the process is killed."""
    application = ConditionalPutsInTurn(create_backend_app("s3"))
    port, address = int(sys.argv[1]), (sys.argv[2:] or ["127.0.0.1"])[0]
    # The processes of a Spark job keep more than its usual 100 connections open; above that nobody is answered.
    limits: dict[str, Any] = {"connection_limit": 4_000, "asyncore_use_poll": True}
    serve(application, host=address, port=port, threads=THREADS, channel_timeout=3_600, **limits)


if __name__ == "__main__":
    main()

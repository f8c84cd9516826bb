"""An S3 server on loopback, in a process of its own: moto from PyPI."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.io.object_store.client import client_of
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

START_SECONDS = 60.0
MOTO = Path(__file__).parent / "support" / "moto_server.py"
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key"  # noqa: S105 - of a server that takes any


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket of a server."""

    url: str
    name: str

    @property
    def options(self) -> dict[str, str]:
        """Of a catalog whose warehouse lies in the bucket."""
        return {"s3.endpoint": self.url, "s3.access-key": ACCESS_KEY, "s3.secret-key": SECRET_KEY}

    @property
    def root(self) -> str:
        return f"s3://{self.name}"

    @property
    def file_io(self) -> ObjectFileIO:
        file_io, _ = resolve(self.root, self.options)
        assert isinstance(file_io, ObjectFileIO)
        return file_io


class CountingLibrary:
    """The library of a store's client, and the names of its functions that were called."""

    def __init__(self, library: Any, delay: float) -> None:
        self.inner = library
        self.delay = delay
        self.exceptions = library.exceptions
        self._store = library._store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        time.sleep(self.delay)
        return getattr(self.inner, name)


@contextmanager
def counted(bucket: S3Bucket, delay: float = 0.0) -> Iterator[list[str]]:
    """Yield the calls of the library that are made for a bucket from now on, each of which takes longer."""
    client = client_of(bucket.file_io.settings)
    library = CountingLibrary(client.library, delay)
    client.library = library
    try:
        yield library.calls
    finally:
        client.library = library.inner


class S3Server:
    """A server that is killed at the end; a context manager."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.port = free_port()
        self.address = address
        self.url = f"http://{address}:{self.port}"
        self._buckets = 0
        self._process = subprocess.Popen(
            [sys.executable, MOTO, str(self.port), address],
            # moto looks for a profile of AWS itself, and answers 500 if there is no such.
            env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection((self.address, self.port), 1).close()
            except OSError:
                assert self._process.poll() is None, "moto did not start"
                time.sleep(0.05)
            else:
                return self
        raise TimeoutError("moto did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def make_bucket(self) -> S3Bucket:
        """Make a bucket that nobody else has."""
        self._buckets += 1
        bucket = S3Bucket(self.url, f"bucket-{self._buckets}")
        request = urllib.request.Request(f"{self.url}/{bucket.name}", method="PUT")  # noqa: S310 - loopback
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - see above
        return bucket


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])

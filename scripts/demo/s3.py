"""The demo on an object store: the same job and the same numbers, with the warehouse on a server with the S3 API.

The server is versitygw if that is installed, else moto from PyPI; it listens on this machine only, and is stopped at
the end. Spark's own files, the checkpoints, and the files that the job reads are in a temporary directory.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from scripts.demo.batch import Report, console, print_report, run

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "lake"
START_SECONDS = 60.0
MOTO = Path(__file__).parents[2] / "tests" / "support" / "moto_server.py"


def command_of(directory: Path, port: int) -> list[str]:
    """Return the command that starts a server on a port of this machine."""
    versitygw = shutil.which("versitygw")
    if versitygw is None:
        return [sys.executable, str(MOTO), str(port)]
    (directory / "objects").mkdir()
    return [versitygw, "--port", f"127.0.0.1:{port}", "posix", str(directory / "objects")]


@contextmanager
def running_server(directory: Path) -> Iterator[str]:
    """Start a server, and set the environment variables through which this process and its children find it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    command = command_of(directory, port)
    keys = {"AWS_ACCESS_KEY_ID": "demo-key", "AWS_SECRET_ACCESS_KEY": "demo-secret", "AWS_REGION": "us-east-1"}
    own = {"ROOT_ACCESS_KEY": keys["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": keys["AWS_SECRET_ACCESS_KEY"]}
    with (directory / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **own})
    try:
        wait_for(server, port, directory / "server.log")
        os.environ.update(keys, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
        yield "moto" if str(MOTO) in command else Path(command[0]).name
    finally:
        server.kill()
        server.wait()


def wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit(f"the S3 server did not start:\n{log.read_text(errors='replace')}")


def main() -> None:
    """Run the demo."""
    report = Report(rows=[], seconds={})
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as name:
        directory = Path(name)
        with running_server(directory) as server:
            boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket=BUCKET)
            console.print(f"the warehouse is s3://{BUCKET}/warehouse on {server}, {os.environ['AWS_ENDPOINT_URL']}")
            print_report(report, *run(report, f"s3://{BUCKET}/warehouse", directory))


if __name__ == "__main__":
    main()

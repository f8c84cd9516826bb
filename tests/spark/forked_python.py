"""A Python that Spark starts as ``python -m pyspark.<module>`` in no time: a fork of a process with all imports done.

Spark starts a process for each stream of ``format("penstock")``, and others for each plan; each would spend a second on
imports. A server, started with the session, has imported what they need and forks at each request. What Spark runs as
its Python is a client that hands on arguments, environment, directory, and standard streams; anything but a module of
PySpark, and all once the server is gone, is run by the usual Python. Most sessions in processes of their own have a
server too; the SQL prompt, the clusters and, in long runs, a program with two sessions have Spark's usual workers.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENT: Final = Path(__file__).with_name("forked_python_client.py")
NEEDED: Final = (
    "numpy",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "penstock.spark.data_source.source",
    "penstock.spark.write.task",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
)


@contextmanager
def forked_python(folder: Path) -> Iterator[str]:
    """Start a server; yield the path of the executable that asks it."""
    address, executable = folder / "python.socket", folder / "python"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{CLIENT}" "{address}" "{sys.executable}" "$@"\n')
    executable.chmod(0o755)
    # As Spark sets it for its workers, which have to agree on hashes; a thread of OpenBLAS would be lost in a fork.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.spark.forked_python", str(address)]
    server = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield str(executable)
    finally:
        server.communicate()


def serve(address: str) -> None:
    """Fork for each request, until standard input ends."""
    for name in NEEDED:
        with suppress(ModuleNotFoundError):  # of other versions of PySpark
            importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)  # noqa: T201 - what starts it waits for this
        # Its standard input ends with the process that started it.
        while select.select([listener, sys.stdin], [], [])[0] == [listener]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                run(connection)
            connection.close()


def run(connection: socket.socket) -> NoReturn:
    """Become what the client was asked to be, and have it end with the same exit code."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        module = take_over(connection)
        warnings.simplefilter("ignore", RuntimeWarning)  # the module is imported already
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as a Python that ends by an error
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        with suppress(OSError):
            connection.sendall(bytes([code & 0xFF]))
        os._exit(code)


def take_over(connection: socket.socket) -> str:
    """Take the client's standard streams, directory, environment and arguments; return the module to run."""
    data, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while more := connection.recv(1 << 16):
        data += more
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    directory, environment, module, *arguments = json.loads(data)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [directory, *paths, *(path for path in sys.path if path not in paths)]
    sys.argv[1:] = arguments
    # As a Python that starts does.
    if any(Path(path, "sitecustomize.py").is_file() for path in paths):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")
    return str(module)


if __name__ == "__main__":
    serve(sys.argv[1])

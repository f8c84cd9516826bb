"""Real processes, started fast: one process imports everything, and forks whenever one is wanted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

# Reads one JSON object a line: {"start": <arguments of work>} is answered with the pid, {"wait": pid} with the exit
# code, negative for a signal, {"poll": pid} too or, while the process runs, with null. Nothing here uses threads before
# it forks.
SERVER = """
import json, os, sys, traceback
import pyarrow as pa
pa.array([1])  # imports pandas, if that is installed: a second or two, which each fork would need again
for line in sys.stdin:
    request = json.loads(line)
    if "start" in request:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(0)
                work(**request["start"])
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        answer = pid
    elif "poll" in request:
        ended, status = os.waitpid(request["poll"], os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if ended else None
    else:
        answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
    print(json.dumps(answer), flush=True)
"""


class Forker:
    """Starts processes that run ``work(**arguments)`` of a script.

    Args:
        script: source that defines ``work``; it must start no threads by itself.
    """

    def __init__(self, script: str) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", script + SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in tuple(self._running):
            self.kill(pid)
            self.wait(pid)
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=30)
        assert self._server.stdout is not None
        self._server.stdout.close()

    def start(self, **arguments: Any) -> int:
        """Start a process; returns its pid."""
        pid = self._ask({"start": arguments})
        assert pid is not None
        self._running.add(pid)
        return pid

    def wait(self, pid: int) -> int:
        """Wait for a process to end; returns its exit code, negative for a signal."""
        code = self._ask({"wait": pid})
        assert code is not None
        self._running.discard(pid)
        return code

    def poll(self, pid: int) -> int | None:
        """Return the exit code of a process as ``wait`` does, once, or None while it runs."""
        code = self._ask({"poll": pid})
        if code is not None:
            self._running.discard(pid)
        return code

    @staticmethod
    def kill(pid: int) -> None:
        """Kill a process that was not waited for, without a chance to do anything more."""
        os.kill(pid, signal.SIGKILL)

    def _ask(self, request: dict[str, Any]) -> int | None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer: int | None = json.loads(self._server.stdout.readline())
        return answer

"""Processes that begin at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# Imports what a program imports and forks once for each race, since the imports take longer than most races. Its
# arguments: the program, and for each process the ends of two pipes and its own arguments.
LAUNCHER = """
import ast, json, os, sys, traceback
program, starts = sys.argv[1], json.loads(sys.argv[2])
imports = [each for each in ast.parse(program).body if isinstance(each, (ast.Import, ast.ImportFrom))]
exec(compile(ast.Module(imports, []), "imports", "exec"), {})
code = compile(program, "program", "exec")
ends = {end for source, sink, _ in starts for end in (source, sink)}
for source, sink, arguments in starts:
    if os.fork() == 0:
        for end in ends - {source, sink}:
            os.close(end)
        ended = 1
        try:
            sys.argv, sys.stdin, sys.stdout = ["program", *arguments], open(source), open(sink, "w")
            exec(code, {"__name__": "__main__"})
            sys.stdout.flush()
            ended = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(ended)
for end in ends:
    os.close(end)
sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in starts))
"""


def run_together(program: str, arguments: Sequence[Sequence[str]]) -> list[Any]:
    """Run a program once for each list of arguments, all from the same moment on; return the JSON that each prints.

    Args:
        program: prints ``ready``, reads from its standard input the monotonic time at which it begins, and prints JSON
            in one line. It starts no threads when it is imported.
    """
    with ExitStack() as stack:
        starts, pipes = [], []
        for each in arguments:
            (source, into), (out_of, sink) = os.pipe(), os.pipe()
            starts.append((source, sink, list(each)))
            pipes.append((stack.enter_context(open(into, "w")), stack.enter_context(open(out_of))))  # noqa: PTH123 - descriptors
        ends = [end for source, sink, _ in starts for end in (source, sink)]
        launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, program, json.dumps(starts)], pass_fds=ends, start_new_session=True
        )
        for end in ends:
            os.close(end)
        try:
            for _, out in pipes:
                assert out.readline() == "ready\n"
            start = time.monotonic() + 0.05
            for into_one, _ in pipes:
                into_one.write(f"{start}\n")
                into_one.flush()
            found = [json.loads(out.readline()) for _, out in pipes]
            assert launcher.wait(timeout=60) == 0
            return found
        finally:
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGKILL)
                launcher.wait()

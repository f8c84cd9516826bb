"""Run many fuzz cases of a decoder in a child process, which is killed if it hangs."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.support.fuzz.cases import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

_HANG_SECONDS: Final = 10
_START_SECONDS: Final = 60


@dataclass(slots=True, kw_only=True)
class Result:
    """Outcomes of the cases of one decoder; findings are (case, outcome, detail, bytes as hex)."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str, str, str]] = field(default_factory=list)
    peak_kb: int = 0
    slowest_seconds: float = 0.0
    seconds: float = 0.0


def fuzz(name: str, cases: int, seed: int) -> Result:
    """Run cases of one decoder; after a hang or crash, a new child continues with the next case."""
    result = Result(name=name)
    started = time.monotonic()
    first = 0
    while first < cases:
        first = _run_child(result, first, cases - first, seed)
    result.seconds = time.monotonic() - started
    return result


def _run_child(result: Result, first: int, count: int, seed: int) -> int:
    """Run a child until it ends or hangs; return the number of the next case."""
    command = [sys.executable, "-m", "tests.support.fuzz.cases", result.name, str(first), str(count), str(seed)]
    # Runs our own module; the arguments are numbers and the name of a decoder.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        current: int | None = None
        begun = time.monotonic()
        for message in _lines(child):
            if message is None:
                child.kill()
                return _lost(result, current, first, Outcome.HANG)
            if "peak_kb" in message:
                result.peak_kb = max(result.peak_kb, message["peak_kb"])
                return first + count
            if "outcome" in message:
                result.outcomes[message["outcome"]] += 1
                result.slowest_seconds = max(result.slowest_seconds, time.monotonic() - begun)
                if message["outcome"] == Outcome.RAW:
                    result.findings.append((message["case"], message["outcome"], message["detail"], message["data"]))
                current, first, count = None, message["case"] + 1, count - 1
            else:
                current, begun = message["case"], time.monotonic()
        return _lost(result, current, first, Outcome.CRASH)


def _lost(result: Result, case: int | None, first: int, outcome: Outcome) -> int:
    if case is None:
        raise RuntimeError(f"{result.name}: the child ended outside of a case: run it by hand")
    result.outcomes[outcome] += 1
    result.findings.append((case, outcome, "", ""))
    return max(case, first) + 1


def _lines(child: subprocess.Popen[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield the lines that the child prints, decoded; None if it prints nothing for too long."""
    stream = child.stdout
    if stream is None:
        return
    patience = _START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        rest = b""
        while True:
            if not selector.select(patience):
                yield None
                return
            patience = _HANG_SECONDS
            chunk = stream.read1(1 << 16)  # type: ignore[attr-defined] # a pipe is a buffered reader
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)

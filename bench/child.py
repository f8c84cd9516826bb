"""A process for a peer that cannot run in ours, with requests through a pipe; ``line_server`` is the other side."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Self

from bench.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Response of a child.

    Attributes:
        seconds: duration in the child, by its own clock.
    """

    value: Any
    seconds: float


class Child:
    """A process that answers one request at a time.

    Args:
        name: for messages.
        module: our module, which ``python`` runs.
        log: receives its standard error; None for that of this process.
    """

    def __init__(
        self,
        name: str,
        python: str,
        module: str,
        *,
        environment: Mapping[str, str] | None = None,
        log: IO[str] | int | None = None,
    ) -> None:
        self._name = name
        command: Sequence[str] = (python, "-W", "ignore", "-m", module)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=None if environment is None else dict(environment),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process by closing its input."""
        self._process.__exit__(kind, error, trace)

    def ask(self, op: str, **request: Any) -> Answer:  # noqa: ANN401 - JSON
        """Send a request and wait for the response.

        Raises:
            RuntimeError: the peer rejected it, or its process ended.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request | {"op": op}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            message = f"{self._name}, {op}: its process ended"
            raise RuntimeError(message)
        answer = json.loads(line)
        if "error" in answer:
            message = f"{self._name}, {op}: {answer['error']}"
            raise RuntimeError(message)
        return Answer(value=answer["ok"], seconds=answer["seconds"])

"""A child process without Spark, for the tests of the pipe."""

import os
from typing import Any, Never

from bench.line_server import serve


def add(request: dict[str, Any]) -> int:
    print("a library says something on standard output")  # noqa: T201 - it must not get among the answers
    return sum(request["numbers"])


def refuse(request: dict[str, Any]) -> Never:
    raise ValueError(request["why"])


def leave(_request: dict[str, Any]) -> Never:
    os._exit(3)


if __name__ == "__main__":
    serve({"add": add, "refuse": refuse, "leave": leave})

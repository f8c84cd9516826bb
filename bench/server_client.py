"""A client of a server, in a process of its own: answers a query with its rows. Needs no Penstock.

The environment variables BENCH_SERVER and BENCH_ADDRESS name the server (``connect`` or ``thrift``) and its address.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from bench.line_server import serve

if TYPE_CHECKING:
    from collections.abc import Callable


def _connect(address: str) -> Callable[[str], list[tuple[Any, ...]]]:
    session = importlib.import_module("pyspark.sql").SparkSession.builder.remote(f"sc://{address}").getOrCreate()
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


def _thrift(address: str) -> Callable[[str], list[tuple[Any, ...]]]:
    host, _, port = address.rpartition(":")
    cursor = importlib.import_module("pyhive.hive").connect(host, port=int(port), username="me").cursor()

    def query(text: str) -> list[tuple[Any, ...]]:
        cursor.execute(text)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    return query


def main() -> None:
    """Answer until standard input ends."""
    kinds = {"connect": _connect, "thrift": _thrift}
    query = kinds[os.environ["BENCH_SERVER"]](os.environ["BENCH_ADDRESS"])
    serve({"query": lambda request: query(request["text"])})


if __name__ == "__main__":
    main()

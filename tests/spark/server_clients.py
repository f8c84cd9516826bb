"""Clients that send queries to a server from several threads, in sessions that are all open; run as a program.

Arguments: ``connect`` or ``thrift``, address, number of sessions, number of queries, number of threads. Needs no
Penstock. Prints the seconds that the queries took.
"""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle


def query(number: int) -> "tuple[str, int | None]":
    """Return a statement of a client's day, and the value of its first row."""
    key = number % 40
    if number % 20 == 19:
        return f"INSERT INTO penstock.shop.log VALUES ({number})", None  # noqa: S608 - a number
    if number % 10 == 7:
        return "SELECT count(*) FROM penstock.shop.keys", 40
    return f"SELECT v FROM penstock.shop.keys WHERE k = {key}", key * 2  # noqa: S608 - a number


def connect(address: str):  # noqa: ANN201 - of a library that is imported here
    """Return functions that open and close a session, whose call runs a statement."""
    from pyspark.sql import SparkSession

    def open_session():  # noqa: ANN202
        session = SparkSession.builder.remote(address).create()

        def run(text: str) -> "list[tuple[object, ...]]":
            return [tuple(row) for row in session.sql(text).collect()]

        return run, session.stop

    return open_session


def thrift(address: str):  # noqa: ANN201 - as above
    """Return functions as ``connect`` does."""
    from pyhive import hive

    host, _, port = address.rpartition(":")

    def open_session():  # noqa: ANN202
        connection = hive.connect(host, port=int(port), username="me")
        cursor = connection.cursor()

        def run(text: str) -> "list[tuple[object, ...]]":
            cursor.execute(text)
            return [] if text.startswith("INSERT") else cursor.fetchall()

        return run, connection.close

    return open_session


def main() -> None:
    kind, address, *numbers = sys.argv[1:]
    sessions, queries, threads = map(int, numbers)
    open_session = {"connect": connect, "thrift": thrift}[kind](address)
    counter, lock = iter(range(queries)), threading.Lock()
    all_open = threading.Barrier(threads, timeout=120)

    def client() -> None:
        opened = [open_session() for _ in range(sessions // threads)]
        all_open.wait()
        for run, _ in cycle(opened):
            with lock:
                number = next(counter, None)
            if number is None:
                break
            text, expected = query(number)
            found = run(text)
            if expected is not None and found != [(expected,)]:
                message = f"{text}: {found}"
                raise AssertionError(message)
        for _, close in opened:
            close()

    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(client) for _ in range(threads)]:
            done.result()
    print(round(time.monotonic() - started, 1), flush=True)  # noqa: T201 - its result
    os._exit(0)


if __name__ == "__main__":
    main()

"""The driver of a stream on a standalone cluster; run by ``test_standalone`` as a program, and killed.

Arguments: warehouse on the store, its options as JSON, directory of the checkpoint, settings of the session as JSON.
Prints a line when the session is there, when the executors have Penstock, and for each micro-batch with rows, each
with the seconds since the start.
"""

import json
import sys
import time

from tests.spark.standalone_script import open_session

import penstock

START = time.monotonic()


def say(*words: object) -> None:
    print(f"{time.monotonic() - START:.1f}", *words, flush=True)  # noqa: T201 - its result


def main() -> None:
    spark = open_session(**json.loads(sys.argv[4]))
    say("session")
    penstock.ship(spark)
    say("shipped")
    catalog = penstock.Catalog(sys.argv[1], json.loads(sys.argv[2]))
    source, target = catalog.load_table("d.source"), catalog.load_table("d.target")
    query = target.write_stream(
        source.read_stream(spark, options={"scan.mode": "latest-full"}),
        checkpoint=sys.argv[3],
        trigger={"processingTime": "500 milliseconds"},
    )
    say("started")
    seen = -1
    while query.isActive:
        progress = query.lastProgress
        if progress and progress["numInputRows"] and progress["batchId"] != seen:
            seen = progress["batchId"]
            say("batch", seen, progress["numInputRows"])
        time.sleep(0.2)
    say("ended", query.exception())


if __name__ == "__main__":
    main()

"""The cause of a failed Spark job is one line, whoever raised it."""

from __future__ import annotations

from typing import Final

import pytest

from penstock.spark.compact.failure import spark_cause

STAGE: Final = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 8.0 failed 1 times, "
FULL: Final = "(10.0.0.1 executor driver): java.io.IOException: No space left on device"
OURS: Final = "penstock.errors.StorageError: table d.t: cannot write"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            f"calling o1.collect.\n: {STAGE}most recent failure: Lost task 1.0 in stage 8.0 (TID 9) {FULL}\n\tat java",
            "java.io.IOException: No space left on device",
        ),
        (
            f"{STAGE}most recent failure: Lost task (TID 9) (h executor 2): Traceback:\n{OURS}\n\tat org.apache.spark",
            OURS,
        ),
        ("[JOB_CANCELLED] Job 3 cancelled\n\tat org.apache.spark", "[JOB_CANCELLED] Job 3 cancelled"),
        ("", "RuntimeError"),
    ],
)
def test_cause_is_the_error_of_the_task(text: str, cause: str) -> None:
    assert spark_cause(RuntimeError(text)) == cause

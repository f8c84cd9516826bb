"""What a query does around its micro-batches, without Spark."""

from __future__ import annotations

import re
import traceback

from penstock.spark.stream.micro_batches import batch_interruption


def test_spark_recognizes_the_interruption_of_a_batch() -> None:
    text = "".join(traceback.format_exception_only(batch_interruption()))
    # The pattern by which Spark finds an exception of Py4J in the text of an error of foreachBatch.
    pattern = r"py4j\.protocol\.Py4JJavaError: An error occurred while calling.*java\.lang\.InterruptedException"
    assert re.search(pattern, text, re.DOTALL)

"""Writes on a cluster one of whose workers does not share the warehouse; run by ``test_shared_storage`` as a program.

Arguments: directory of the warehouse, then the names of the ways to write. Prints one JSON object: for each way what it
raised, and the rows that the table has afterwards.
"""

import json
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock import Catalog, Table

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 100_000


def main() -> None:
    catalog = Catalog(sys.argv[1])
    catalog.create_database("d")
    native = catalog.create_table("d.native", "id BIGINT")
    buckets = catalog.create_table("d.buckets", "id BIGINT", options={"bucket": "4", "bucket-key": "id"})
    merged = catalog.create_table("d.merged", "id BIGINT, p INT", partition_by=["p"])
    for _ in range(5):
        merged.append(pa.table({"id": pa.array(range(6), pa.int64()), "p": pa.array(range(6), pa.int32())}))
    spark = (
        SparkSession.builder.master("local-cluster[2,1,600]")
        .config("spark.executor.memory", "500m")
        .config("spark.ui.enabled", "false")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.locality.wait", "0")
        .getOrCreate()
    )
    frame = spark.range(0, ROWS, 1, 4)

    def stream() -> None:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
        query = native.write_stream(rows.selectExpr("value AS id"), checkpoint=f"{sys.argv[1]}-checkpoint")
        query.awaitTermination()

    ways: dict[str, tuple[Table, Callable[[], object]]] = {
        "native": (native, lambda: native.append(frame)),
        "python": (buckets, lambda: buckets.append(frame)),
        "format": (buckets, lambda: frame.write.format("penstock").mode("append").save(buckets.location)),
        "compact": (merged, lambda: merged.compact(spark, strategy="full")),
        "stream": (native, stream),
    }
    found = {}
    for name in sys.argv[2:]:
        table, write = ways[name]
        try:
            write()
            error = ""
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test looks at it
            error = f"{type(failure).__name__}: {failure}"
        findings = [str(each) for each in table.inspect.fsck().findings]
        found[name] = {"error": error, "rows": table.to_arrow(["id"]).num_rows, "findings": findings}
    print(json.dumps(found))  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()

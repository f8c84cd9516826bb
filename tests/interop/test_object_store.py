"""pypaimon reads on an object store what we write there, with the options that both know."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.s3_server import ACCESS_KEY, SECRET_KEY

from penstock import Catalog

if TYPE_CHECKING:
    from tests.interop.engines import Engine
    from tests.s3_server import S3Bucket


def test_pypaimon_reads_ours(pypaimon: Engine, s3_bucket: S3Bucket) -> None:
    options = {
        "fs.s3.endpoint": s3_bucket.url,
        "fs.s3.accessKeyId": ACCESS_KEY,
        "fs.s3.accessKeySecret": SECRET_KEY,
        "fs.s3.region": "us-east-1",
    }
    catalog = Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", options)
    catalog.create_database("d")
    table = catalog.create_table(
        "d.t", "id INT, day STRING", partition_by="day", options={"bucket": "2", "bucket-key": "id"}
    )
    for number in range(3):
        ids = list(range(number * 10, number * 10 + 10))
        table.append(pa.table({"id": pa.array(ids, pa.int32()), "day": [f"d{each % 2}" for each in ids]}))
    assert table.compact().snapshots
    read = pypaimon.ask("read", table.location, catalog=options)["rows"]
    assert sorted((row["id"], row["day"]) for row in read) == [(each, f"d{each % 2}") for each in range(30)]

"""Spark reads tables on S3 by its own readers, where Hadoop's connector is on the class path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.cloud_servers import HADOOP_AWS
from tests.quick_spark import quick_environment
from tests.s3_server import SECRET_KEY
from tests.spark.hadoop_s3_script import ROWS

from penstock import Catalog

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket

SCRIPT = Path(__file__).with_name("hadoop_s3_script.py")

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not HADOOP_AWS.exists(), reason="hadoop-aws is not here: make test-cloud fetches it"),
]


@pytest.fixture
def found(s3_bucket: S3Bucket, tmp_path: Path) -> dict[str, str]:
    root = f"{s3_bucket.root}/{uuid.uuid4()}"
    catalog = Catalog(root, s3_bucket.options)
    catalog.create_database("d")
    for name, file_format in (("parquet", "parquet"), ("orc", "orc")):
        table = catalog.create_table(
            f"d.{name}", "id BIGINT, `a day` STRING", partition_by="a day", options={"file.format": file_format}
        )
        ids = pa.array(range(ROWS), pa.int64())
        table.append(pa.table({"id": ids, "a day": [f"2026-01-0{number % 2 + 1} x" for number in range(ROWS)]}))
    jars = ",".join(map(str, sorted(HADOOP_AWS.glob("*.jar"))))
    done = subprocess.run(
        [sys.executable, SCRIPT, root, json.dumps(s3_bucket.options), jars],
        env={**os.environ, **quick_environment()},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    output: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return output


def test_tables_are_read_by_spark_with_the_access_that_it_has(found: dict[str, str]) -> None:
    for name in ("parquet", "orc"):
        for way in ("plan", "SQL"):
            assert f"by {name} reader of Spark" in found[f"{name} {way}"]
        assert found[f"{name} rows"] == found[f"{name} SQL rows"] == [ROWS, sum(range(ROWS)), ROWS // 2]
    assert found["stream"] == list(range(ROWS))
    reason = "because its files are on S3, and spark.hadoop.fs.s3a has other settings for the bucket"
    assert f"by Python workers, {reason}" in found["other SQL"]
    assert "MapInArrow" in found["other access plan"]
    assert SECRET_KEY not in json.dumps(found)

"""Spark reads tables on S3 by its own readers, where Hadoop's connector is on the class path."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.cloud_servers import HADOOP_AWS
from tests.quick_spark import quick_environment
from tests.s3_server import SECRET_KEY
from tests.spark.hadoop_script import ROWS, check_changes, make_tables, read_tables

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not HADOOP_AWS.exists(), reason="hadoop-aws is not here: make test-cloud fetches it"),
]


def test_tables_are_read_by_spark_with_the_access_that_it_has(s3_bucket: S3Bucket) -> None:
    options = s3_bucket.options
    settings = {
        "spark.jars": ",".join(map(str, sorted(HADOOP_AWS.glob("*.jar")))),
        "spark.hadoop.fs.s3a.endpoint": options["s3.endpoint"],
        "spark.hadoop.fs.s3a.access.key": options["s3.access-key"],
        "spark.hadoop.fs.s3a.secret.key": options["s3.secret-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    root = make_tables(s3_bucket.root, options)
    found, _ = read_tables(
        root,
        settings,
        own={},
        other={**options, "s3.access-key": "another"},
        environment=quick_environment(),
    )
    for name in ("parquet", "orc"):
        for way in ("plan", "SQL"):
            assert f"by {name} reader of Spark" in found[f"{name} {way}"]
        assert found[f"{name} rows"] == found[f"{name} SQL rows"] == [ROWS, sum(range(ROWS)), ROWS // 2]
        assert [path.partition("://")[0] for path in found[f"{name} files"]] == ["s3a"] * 2
    assert found["stream"] == list(range(ROWS))
    reason = "because its files are on S3, and spark.hadoop.fs.s3a has other settings for the bucket"
    assert f"by Python workers, {reason}" in found["other SQL"]
    assert "MapInArrow" in found["other access plan"]
    check_changes(found["changes"], root.replace("s3://", "s3a://"))
    url = f"{s3_bucket.url}/{s3_bucket.name}?list-type=2&prefix={urlsplit(root).path[1:]}/d.db/a"
    with urllib.request.urlopen(url, timeout=30) as listed:  # noqa: S310 - loopback
        names = listed.read().decode()
    assert "/d.db/a queue[1]/snapshot/" in names
    assert "/.penstock-" not in names  # also no object that stands for a directory
    assert SECRET_KEY not in json.dumps(found)

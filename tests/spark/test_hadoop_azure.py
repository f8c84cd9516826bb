"""Spark reads tables on Azure by its own readers, where Hadoop's connector is on the class path.

Azurite has the Blob API only, so the connector is told that the account has no hierarchical namespace.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.azure_server import ACCOUNT, CONTAINER, HOST, KEY, PROGRAM, AzureServer
from tests.cloud_servers import HADOOP_AZURE
from tests.quick_spark import quick_environment
from tests.spark.hadoop_script import ROWS, make_tables, read_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="Azurite is not here: make test-cloud fetches it"),
    pytest.mark.skipif(not HADOOP_AZURE.exists(), reason="hadoop-azure is not here: make test-cloud fetches it"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[AzureServer]:
    with AzureServer() as server:
        yield server


@pytest.mark.parametrize("credential", ["account key", "SAS token"])
def test_tables_are_read_by_spark_with_the_access_that_it_has(server: AzureServer, credential: str) -> None:
    token = server.sas_token()
    with_token = {
        "penstock.azure.endpoint": server.options["penstock.azure.endpoint"],
        "penstock.azure.account": ACCOUNT,
        f"fs.azure.sas.fixed.token.{HOST}": token,
    }
    settings = {
        "spark.jars": ",".join(map(str, sorted(HADOOP_AZURE.glob("*.jar")))),
        **{f"spark.hadoop.{key}": value for key, value in server.hadoop_settings.items()},
    }
    if credential == "account key":
        place, own, other = f"abfs://{CONTAINER}@{HOST}", {}, with_token
        settings[f"spark.hadoop.fs.azure.account.key.{HOST}"] = KEY
    else:
        place, own, other = f"az://{CONTAINER}", {"penstock.azure.account": ACCOUNT}, server.options
        settings["spark.hadoop.fs.azure.account.auth.type"] = "SAS"
        settings[f"spark.hadoop.fs.azure.sas.fixed.token.{CONTAINER}.{HOST}"] = token
    found, stderr = read_tables(
        make_tables(place, server.options), settings, own=own, other=other, environment=quick_environment()
    )
    for name in ("parquet", "orc"):
        for way in ("plan", "SQL"):
            assert f"by {name} reader of Spark" in found[f"{name} {way}"]
        assert found[f"{name} rows"] == found[f"{name} SQL rows"] == [ROWS, sum(range(ROWS)), ROWS // 2]
        roots = ["/".join(path.split("/")[:3]) for path in found[f"{name} files"]]
        assert roots == [f"abfs://{CONTAINER}@{HOST}"] * 2
    assert found["stream"] == list(range(ROWS))
    reason = "because its files are on Azure, and spark.hadoop.fs.azure has other settings for the container"
    assert f"by Python workers, {reason}" in found["other SQL"]
    assert "MapInArrow" in found["other access plan"]
    assert found["other access rows"] == [ROWS, sum(range(ROWS)), ROWS // 2]
    shown = json.dumps(found) + stderr
    assert not [secret for secret in (KEY, token, token.partition("sig=")[2]) if secret in shown]

"""Spark reads tables on Azure by its own readers, where Hadoop's connector is on the class path.

Azurite has the Blob API only, so the connector is told that the account has no hierarchical namespace.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.azure_server import ACCOUNT, CONTAINER, HOST, KEY, PROGRAM, AzureServer
from tests.certificates import STORE_PASSWORD, make_certificates
from tests.cloud_servers import HADOOP_AZURE
from tests.quick_spark import quick_environment
from tests.spark.hadoop_script import ROWS, check_changes, make_tables, read_tables

from penstock.io.object_store.client import client_of
from penstock.io.object_store.file_io import settings_of
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="Azurite is not here: make test-cloud fetches it"),
    pytest.mark.skipif(not HADOOP_AZURE.exists(), reason="hadoop-azure is not here: make test-cloud fetches it"),
]


JARS = ",".join(map(str, sorted(HADOOP_AZURE.glob("*.jar"))))
SUMS = [ROWS, sum(range(ROWS)), ROWS // 2]


@pytest.fixture(scope="module")
def server() -> Iterator[AzureServer]:
    with AzureServer() as server:
        yield server


@pytest.mark.parametrize("credential", ["account key", "SAS token"])
def test_tables_are_read_by_spark_with_the_access_that_it_has(server: AzureServer, credential: str) -> None:
    if credential == "account key":
        place, own, other = f"abfs://{CONTAINER}@{HOST}", {}, server.options_with_token
        settings = {f"fs.azure.account.key.{HOST}": KEY}
    else:
        place, own, other = f"az://{CONTAINER}", {"penstock.azure.account": ACCOUNT}, server.options
        settings = {
            "fs.azure.account.auth.type": "SAS",
            f"fs.azure.sas.fixed.token.{CONTAINER}.{HOST}": server.sas_token(),
        }
    settings = {f"spark.hadoop.{key}": value for key, value in {**server.hadoop_settings, **settings}.items()}
    root = make_tables(place, server.options)
    found, stderr = read_tables(
        root, {"spark.jars": JARS, **settings}, own=own, other=other, environment=quick_environment()
    )
    check(found, f"abfs://{CONTAINER}@{HOST}")
    check_changes(found["changes"], f"abfs://{CONTAINER}@{HOST}/{root.rpartition('/')[2]}")
    settings_of_store = settings_of(resolve(root, server.options)[0])
    assert settings_of_store is not None
    names = client_of(settings_of_store).call(
        lambda library, store: [meta["path"] for chunk in library.list(store) for meta in chunk]
    )
    assert any("/d.db/a queue[1]/snapshot/" in name for name in names)
    # Azurite answers 500 to all batches of deletions with a token, so what tests the store stays there.
    left = [name for name in names if "/.penstock-" in name and "/.penstock-probe-" not in name]
    assert not left  # also no blob that stands for a directory
    shown = json.dumps(found) + stderr
    tokens = [value for key, value in {**settings, **other}.items() if ".sas.fixed.token." in key]
    assert len(tokens) == 1
    assert not [secret for secret in (KEY, *tokens, tokens[0].partition("sig=")[2]) if secret in shown]


def test_tables_are_read_by_spark_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = make_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    trust = {"javax.net.ssl.trustStore": str(certificates.store), "javax.net.ssl.trustStorePassword": STORE_PASSWORD}
    with AzureServer(certificates) as server:
        settings = {**server.hadoop_settings, f"fs.azure.account.key.{HOST}": KEY}
        found, _ = read_tables(
            make_tables(f"abfss://{CONTAINER}@{HOST}", server.options),
            {
                "spark.jars": JARS,
                "spark.driver.extraJavaOptions": " ".join(f"-D{key}={value}" for key, value in trust.items()),
                **{f"spark.hadoop.{key}": value for key, value in settings.items()},
            },
            own={},
            other=server.options_with_token,
            environment=quick_environment(),
        )
    check(found, f"abfss://{CONTAINER}@{HOST}")


def check(found: dict[str, Any], root: str) -> None:
    """Check that Spark read all with the same access, from files below a root, and Python workers with another."""
    for name in ("parquet", "orc"):
        for way in ("plan", "SQL"):
            assert f"by {name} reader of Spark" in found[f"{name} {way}"]
        assert found[f"{name} rows"] == found[f"{name} SQL rows"] == SUMS
        assert ["/".join(path.split("/")[:3]) for path in found[f"{name} files"]] == [root] * 2
    assert found["stream"] == list(range(ROWS))
    reason = "because its files are on Azure, and spark.hadoop.fs.azure has other settings for the container"
    assert f"by Python workers, {reason}" in found["other SQL"]
    assert "MapInArrow" in found["other access plan"]
    assert found["other access rows"] == SUMS

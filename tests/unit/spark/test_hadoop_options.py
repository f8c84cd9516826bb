"""Which settings of Hadoop's connectors become which options of a catalog, and when the access is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.io.object_store.address import parse_address
from penstock.io.object_store.settings import StoreSettings, store_settings
from penstock.spark.hadoop_options import options_of, why_not_by_keys, why_not_with

if TYPE_CHECKING:
    from pathlib import Path

ABFSS = "abfss://lake@acc.dfs.core.windows.net"
HOST = "acc.dfs.core.windows.net"
KEY = f"fs.azure.account.key.{HOST}"
SAS = f"fs.azure.sas.fixed.token.lake.{HOST}"
WITH_SAS = {"fs.azure.account.auth.type": "SAS"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def opened(location: str, options: dict[str, str] | None = None) -> StoreSettings:
    return store_settings(parse_address(location)[0], options or {})


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (
            {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret", "fs.s3a.session.token": "token"},
            {"s3.access-key": "key", "s3.secret-key": "secret", "s3.session.token": "token"},
        ),
        (
            {"fs.s3a.endpoint": "http://127.0.0.1:9000", "fs.s3a.path.style.access": "true"},
            {"s3.endpoint": "http://127.0.0.1:9000", "s3.path.style.access": "true"},
        ),
        (
            {"fs.s3a.endpoint": "store:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"s3.endpoint": "http://store:9000"},
        ),
        ({"fs.s3a.endpoint": "store"}, {"s3.endpoint": "https://store"}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-west-1"}, {"s3.region": "eu-west-1"}),
        (
            {"fs.s3a.access.key": "of all", "fs.s3a.bucket.lake.access.key": "of lake"},
            {"s3.access-key": "of lake"},
        ),
        ({"fs.s3a.bucket.other.access.key": "of other"}, {}),
    ],
)
def test_settings_become_options(settings: dict[str, str], options: dict[str, str]) -> None:
    assert options_of(opened("s3://lake"), settings.get) == options


@pytest.mark.parametrize(
    ("location", "settings", "options"),
    [
        (ABFSS, {}, {}),
        (ABFSS, {KEY: "of the account", "fs.azure.account.key": "of all"}, {KEY: "of the account"}),
        (ABFSS, {"fs.azure.account.key": "of all"}, {KEY: "of all"}),
        (ABFSS, {"fs.azure.account.key.other.dfs.core.windows.net": "of another"}, {}),
        (ABFSS, {KEY: "key", "fs.azure.account.keyprovider": "a.Class"}, {}),
        (ABFSS, {KEY: "key", SAS: "token"}, {KEY: "key"}),
        (ABFSS, {**WITH_SAS, KEY: "key", SAS: "token"}, {SAS: "token"}),
        (ABFSS, {**WITH_SAS, f"fs.azure.sas.fixed.token.{HOST}": "token"}, {SAS: "token"}),
        (ABFSS, {**WITH_SAS, "fs.azure.sas.fixed.token": "of all", SAS: "of the container"}, {SAS: "of the container"}),
        (ABFSS, {**WITH_SAS, SAS: "token", "fs.azure.sas.token.provider.type": "a.Class"}, {}),
        (ABFSS, {KEY: "key", f"fs.azure.account.auth.type.{HOST}": "OAuth"}, {}),
        (ABFSS, {"fs.azure.abfs.endpoint": "host:1"}, {"penstock.azure.endpoint": "https://host:1/acc"}),
        (ABFSS, {"fs.azure.abfs.endpoint": "acc.dfs.core.windows.net"}, {}),
        (
            ABFSS.replace("abfss", "abfs"),
            {"fs.azure.abfs.endpoint": "host:1", "fs.azure.always.use.https": "false"},
            {"penstock.azure.endpoint": "http://host:1/acc"},
        ),
        (
            ABFSS,
            {"fs.azure.abfs.endpoint": "host:1", "fs.azure.always.use.https": "false"},
            {"penstock.azure.endpoint": "https://host:1/acc"},
        ),
        ("abfss://lake@acc.blob.core.windows.net", {"fs.azure.abfs.endpoint": "host:1", KEY: "of another host"}, {}),
        ("az://lake", {KEY: "key"}, {}),
    ],
)
def test_settings_of_azure_become_options(location: str, settings: dict[str, str], options: dict[str, str]) -> None:
    assert options_of(opened(location), settings.get) == options


def test_a_container_without_an_account_has_the_settings_of_the_one_that_the_catalog_names() -> None:
    settings = opened("az://lake", {"penstock.azure.account": "acc"})
    assert options_of(settings, {KEY: "key"}.get) == {KEY: "key"}


@pytest.mark.parametrize(
    ("location", "options", "known", "reason"),
    [
        (ABFSS, {KEY: "key"}, {KEY: "key"}, None),
        (ABFSS, {f"fs.azure.sas.fixed.token.{HOST}": "token"}, {SAS: "token"}, None),
        ("az://lake", {KEY: "key", "penstock.azure.account": "acc"}, {KEY: "key"}, None),
        ("abfss://c@acc.dfs.core.chinacloudapi.cn", {"fs.azure.account.key.acc": "key"}, {KEY: "key"}, None),
        ("az://lake", {}, {}, "their account is not known: give the catalog 'penstock.azure.account'"),
        (ABFSS, {}, {}, "spark.hadoop.fs.azure has no account key and no fixed SAS token for the container"),
        (ABFSS, {KEY: "key"}, {KEY: "another"}, "spark.hadoop.fs.azure has other settings"),
        (ABFSS, {KEY: "key"}, {SAS: "token"}, "spark.hadoop.fs.azure has other settings"),
        (ABFSS, {}, {KEY: "key"}, "spark.hadoop.fs.azure has other settings"),
        (ABFSS, {KEY: "key", "penstock.azure.endpoint": "https://h:1/acc"}, {KEY: "key"}, "has other settings"),
    ],
)
def test_files_on_azure_are_read_by_spark_with_the_same_access(
    location: str, options: dict[str, str], known: dict[str, str], reason: str | None
) -> None:
    found = why_not_with(opened(location, options), known)
    assert found is None if reason is None else reason in str(found)


def test_an_endpoint_of_the_environment_must_be_one_of_spark_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "https://h:1/acc")
    known = {KEY: "key"}
    settings = opened(ABFSS, known)
    assert why_not_with(settings, known) == "spark.hadoop.fs.azure.abfs.endpoint is not set"
    assert why_not_with(settings, {**known, "penstock.azure.endpoint": "https://h:1/acc"}) is None


@pytest.mark.parametrize(
    ("variables", "settings", "options", "reason"),
    [
        ({}, {}, {}, None),
        ({"AWS_ACCESS_KEY_ID": "key"}, {}, {}, None),
        ({"AWS_PROFILE": "job"}, {}, {}, "a profile of AWS"),
        ({"AWS_PROFILE": "job"}, {"fs.s3a.aws.credentials.provider": "a.Class"}, {}, None),
        ({"AWS_PROFILE": "job"}, {"fs.s3a.bucket.lake.aws.credentials.provider": "a.Class"}, {}, None),
        ({"AWS_PROFILE": "job"}, {"fs.s3a.bucket.other.aws.credentials.provider": "a.Class"}, {}, "a profile of AWS"),
        ({"AWS_PROFILE": "job"}, {}, {"s3.access-key": "key", "s3.secret-key": "secret"}, None),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "a role"}, {}, {}, "a web identity"),
    ],
)
def test_keys_that_the_connector_does_not_look_for_are_a_reason(
    variables: dict[str, str],
    settings: dict[str, str],
    options: dict[str, str],
    reason: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = why_not_by_keys(opened("s3://lake", options), settings.get)
    said = f"spark.hadoop.fs.s3a.aws.credentials.provider is not set, and the keys are those of {reason}"
    assert found == (None if reason is None else said)
    assert why_not_by_keys(opened(ABFSS), settings.get) is None

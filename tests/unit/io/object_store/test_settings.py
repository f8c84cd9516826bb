"""Locations and options of object stores, and what is never shown of them."""

from __future__ import annotations

import pickle
import time

import pytest

from penstock import Catalog
from penstock.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from penstock.io.object_store.failures import failure_of
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.resolve import resolve

ENVIRONMENT = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_ACCOUNT_NAME",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


def opened(location: str, options: dict[str, str] | None = None) -> ObjectFileIO:
    file_io, _ = resolve(location, options)
    assert isinstance(file_io, ObjectFileIO)
    return file_io


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("s3://bucket", "s3://bucket"),
        ("S3://bucket/", "s3://bucket"),
        ("s3a://my.bucket-1/a//b/", "s3a://my.bucket-1/a/b"),
        ("az://container/a", "az://container/a"),
        ("abfss://container@acc.dfs.core.windows.net/a", "abfss://container@acc.dfs.core.windows.net/a"),
        ("abfs://container@acc.dfs.core.windows.net", "abfs://container@acc.dfs.core.windows.net"),
    ],
)
def test_locations_are_taken_apart(location: str, path: str) -> None:
    file_io, found = resolve(location)
    assert found == path
    assert isinstance(file_io, ObjectFileIO)
    assert path.startswith(file_io.settings.address.root)


@pytest.mark.parametrize(
    "location", ["s3://", "s3:///a", "s3:a/b", "s3://key:SECRET@bucket/a", "az://c@h:1/", "s3://b/../a"]
)
def test_locations_without_a_bucket_are_refused_without_being_shown(location: str) -> None:
    with pytest.raises(InvalidOptionError) as error:
        resolve(location)
    assert "SECRET" not in str(error.value)


def test_gcs_has_to_be_asked_for() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'penstock\.object-store.experimental-gs' = 'true'"):
        resolve("gs://bucket/a")
    assert opened("gs://bucket/a", {"penstock.object-store.experimental-gs": "true"})


@pytest.mark.parametrize(
    "keys",
    [
        ("s3.endpoint", "s3.access-key", "s3.secret-key", "s3.region", "s3.path.style.access"),
        (
            "fs.s3a.endpoint",
            "fs.s3a.access.key",
            "fs.s3a.secret.key",
            "fs.s3a.endpoint.region",
            "fs.s3a.path.style.access",
        ),
        ("fs.s3.endpoint", "fs.s3.accessKeyId", "fs.s3.accessKeySecret", "fs.s3.region", "s3.path-style-access"),
    ],
)
def test_options_have_the_names_of_paimon_and_hadoop(keys: tuple[str, ...]) -> None:
    values = ("https://store.example:9000", "id", "SECRET", "eu-west-1", "false")
    settings = opened("s3://bucket/a", dict(zip(keys, values, strict=True))).settings
    assert dict(settings.config) == {
        "access_key_id": "id",
        "secret_access_key": "SECRET",
        "region": "eu-west-1",
        "endpoint": "https://bucket.store.example:9000",
        "virtual_hosted_style_request": "true",
        "conditional_put": "etag",
    }
    assert not settings.is_cloud


def test_an_endpoint_of_its_own_has_the_bucket_in_the_path() -> None:
    config = dict(opened("s3://bucket/a", {"s3.endpoint": "http://127.0.0.1:9000"}).settings.config)
    assert config["endpoint"] == "http://127.0.0.1:9000"
    assert config["virtual_hosted_style_request"] == "false"
    assert dict(opened("s3://bucket/a").settings.config)["virtual_hosted_style_request"] == "true"


def test_an_account_of_azure_has_its_key() -> None:
    key = {"fs.azure.account.key.acc.dfs.core.windows.net": "SECRET"}
    for location, options in (
        ("abfss://c@acc.dfs.core.windows.net/a", key),
        ("az://c/a", {**key, "penstock.azure.account": "acc"}),
    ):
        config = dict(opened(location, options).settings.config)
        assert (config["account_name"], config["account_key"]) == ("acc", "SECRET")
    assert "account_key" not in dict(opened("abfss://c@other.dfs.core.windows.net/a", key).settings.config)


def test_an_account_of_the_environment_has_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
    config = dict(opened("az://c/a", {"fs.azure.account.key.acc.dfs.core.windows.net": "SECRET"}).settings.config)
    assert (config["account_name"], config["account_key"]) == ("acc", "SECRET")


def test_a_container_of_azure_has_its_token_unless_the_account_has_a_key() -> None:
    host = "acc.dfs.core.windows.net"
    options = {f"fs.azure.sas.fixed.token.{host}": "of all", f"fs.azure.sas.fixed.token.c.{host}": "SECRET"}
    file_io = opened(f"abfss://c@{host}/a", options)
    assert ("sas_token", "SECRET") in file_io.settings.config
    assert "SECRET" not in repr(file_io)
    assert ("sas_token", "of all") in opened(f"abfss://other@{host}/a", options).settings.config
    with_key = dict(opened(f"abfss://c@{host}/a", {**options, f"fs.azure.account.key.{host}": "key"}).settings.config)
    assert (with_key["account_key"], with_key.get("sas_token")) == ("key", None)


@pytest.mark.parametrize(
    ("location", "endpoint", "uri"),
    [
        ("s3://c/a b", None, "s3a://c/a%20b"),
        ("az://c/a b", None, "abfss://c@acc.dfs.core.windows.net/a%20b"),
        ("az://c/a", "http://127.0.0.1:1/acc", "abfs://c@acc.dfs.core.windows.net/a"),
        ("abfs://c@acc.dfs.core.windows.net/a", None, "abfs://c@acc.dfs.core.windows.net/a"),
        ("abfss://c@other.blob.core.windows.net/a", None, "abfss://c@other.blob.core.windows.net/a"),
    ],
)
def test_hadoop_has_a_name_for_a_file(location: str, endpoint: str | None, uri: str) -> None:
    options = {"penstock.azure.account": "acc"}
    file_io = opened(location, {**options, "penstock.azure.endpoint": endpoint} if endpoint else options)
    assert file_io.to_uri(location) == uri


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.endpoint", "127.0.0.1:9000"),
        ("s3.path.style.access", "perhaps"),
        ("penstock.object-store.timeout", "soon"),
        ("penstock.object-store.max-retries", "-1"),
    ],
)
def test_an_option_that_is_none_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=value):
        resolve("s3://bucket/a", {key: value})


def test_keys_are_never_shown() -> None:
    options = {"s3.access-key": "SECRET-1", "s3.secret-key": "SECRET-2", "s3.session.token": "SECRET-3"}
    file_io = opened("s3://bucket/a", options)
    assert "SECRET" not in repr(file_io)
    assert "SECRET" not in repr(Catalog("s3://bucket/a", options))
    assert pickle.loads(pickle.dumps(file_io)) == file_io


def test_paths_of_other_buckets_are_not_used() -> None:
    for path in ("s3://other/a", "s3://bucket2/a", "/bucket/a", "s3a://bucket/a"):
        with pytest.raises(StorageError, match="is outside of s3://bucket"):
            opened("s3://bucket").read(path)
    with pytest.raises(StorageError, match="no object has such a path"):
        opened("s3://bucket", {"s3.endpoint": "http://127.0.0.1:1"}).read("s3://bucket/t/../other/file")


def test_a_missing_store_is_reported_soon() -> None:
    started = time.monotonic()
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "k", "s3.secret-key": "s"}
    with pytest.raises(StorageError, match="the store does not answer; check the endpoint") as error:
        opened("s3://bucket", options).read("s3://bucket/a")
    assert error.value.retryable
    # Ten are promised on a machine that is not busy; without a limit of ours a request is retried for two minutes.
    assert time.monotonic() - started < 40


def test_a_missing_bucket_is_reported(s3_bucket: object) -> None:
    options = dict(s3_bucket.options)  # type: ignore[attr-defined] # of tests, which mypy does not check
    file_io = opened("s3://no-such-bucket", options)
    for call in (file_io.read, file_io.exists, file_io.list, file_io.open_input, lambda path: file_io.write(path, b"")):
        with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
            call("s3://no-such-bucket/a")
    with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
        file_io.put_if_absent("s3://no-such-bucket/a", b"")


def test_missing_credentials_are_reported() -> None:
    said = (
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 5ms - Server returned "
        "non-2xx status code: 403 Forbidden: no"
    )
    error = failure_of(RuntimeError(said)).to_error("read", "s3://bucket/a", "bucket")
    assert "no credentials were found: give the catalog 's3.access-key'" in str(error)


@pytest.mark.parametrize("key", ["s3.access-key", "s3.secret-key", "s3.session.token", "s3.region"])
@pytest.mark.parametrize("value", ["SECRET\n", " SECRET", "SECRET\u00e9"])
def test_a_value_that_no_request_can_hold_is_refused_without_being_shown(key: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"value of option '{key}' has a line end") as error:
        opened("s3://bucket/a", {key: value})
    assert "SECRET" not in str(error.value)


def test_an_invalid_key_of_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "SECRET\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    file_io = opened("s3://other-keys/a", {"s3.endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageError, match="check them, in the environment too, for line ends") as error:
        file_io.read("s3://other-keys/a")
    assert not error.value.retryable
    assert "SECRET" not in str(error.value)


def test_an_invalid_key_of_an_account_is_reported() -> None:
    options = {"fs.azure.account.key.acc.dfs.core.windows.net": "no base64!"}
    with pytest.raises(StorageError, match="the key of the Azure account is none") as error:
        opened("abfss://c@acc.dfs.core.windows.net/a", options).read("abfss://c@acc.dfs.core.windows.net/a")
    assert not error.value.retryable


def test_a_token_that_no_request_can_hold_is_refused_without_being_shown() -> None:
    options = {"fs.azure.sas.fixed.token.acc.dfs.core.windows.net": "SECRET\n"}
    with pytest.raises(InvalidOptionError, match=r"option 'fs\.azure\.sas\.fixed\.token\.\*' has a line end") as error:
        opened("abfss://c@acc.dfs.core.windows.net/a", options)
    assert "SECRET" not in str(error.value)


def test_an_account_of_another_cloud_is_looked_for_there() -> None:
    config = dict(opened("abfss://c@acc.dfs.core.chinacloudapi.cn/a").settings.config)
    assert config["endpoint"] == "https://acc.blob.core.chinacloudapi.cn"
    assert "endpoint" not in dict(opened("abfss://c@acc.dfs.core.windows.net/a").settings.config)


def test_an_untrusted_certificate_is_reported() -> None:
    said = "Error performing GET https://h/b/t - HTTP error: error sending request Debug source: InvalidCertificate(x)"
    failure = failure_of(type("GenericError", (Exception,), {})(said))
    assert not failure.is_retryable
    assert "SSL_CERT_FILE names a file of signers" in str(failure.to_error("read", "s3://bucket/a", "bucket"))


def test_a_wrong_clock_is_reported() -> None:
    said = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>RequestTimeTooSkewed</Code></Error>"
    error = failure_of(RuntimeError(said)).to_error("read", "s3://bucket/a", "bucket")
    assert "the clock of this machine differs too much from that of the store (403 RequestTimeTooSkewed)" in str(error)


def test_a_missing_account_name_is_reported() -> None:
    with pytest.raises(StorageError, match="the Azure account is missing: write abfss://container@account") as error:
        opened("az://container/a").read("az://container/a")
    assert not error.value.retryable

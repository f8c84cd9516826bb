"""Keys of containers, web identities, machines and profiles: a server of the test gives them, S3 requests show them."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.certificates import Certificates, make_certificates
from tests.s3_server import free_port
from tests.unit.io.object_store.key_server import (
    IDENTITY,
    ROLE,
    SECRET,
    TOKEN,
    Given,
    KeyServer,
    RecordingProxy,
)

from penstock import Catalog, StorageError, UnsupportedFeatureError
from penstock.io.object_store.address import parse_address
from penstock.io.object_store.credentials import KeySource, key_source
from penstock.io.object_store.settings import store_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.s3_server import S3Bucket

    from penstock import Table

    Environment = Callable[[KeyServer, Path], Mapping[str, str]]

ROWS = pa.table({"id": [1, 2, 3]})
OF_FILE = Given("KEY-OF-A-FILE", "")
STATIC = f"[{{}}]\naws_access_key_id = KEY-OF-A-FILE\naws_secret_access_key = {SECRET}\n"
# Ten are promised on a machine that is not busy; without a limit of ours a request is retried for two minutes.
MOST_SECONDS = 40.0


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    return monkeypatch


@pytest.fixture
def s3(s3_bucket: S3Bucket) -> Iterator[RecordingProxy]:
    with RecordingProxy(s3_bucket.url) as proxy:
        yield proxy


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    with KeyServer() as server:
        yield server


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


@pytest.fixture
def keys_by_tls(certificates: Certificates) -> Iterator[KeyServer]:
    with KeyServer(certificates) as server:
        yield server


def new_catalog(s3: RecordingProxy, bucket: S3Bucket) -> Catalog:
    """Return a catalog without keys."""
    return Catalog(f"{bucket.root}/{uuid.uuid4()}", {"s3.endpoint": s3.url})


def new_table(s3: RecordingProxy, bucket: S3Bucket) -> Table:
    catalog = new_catalog(s3, bucket)
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT")
    table.append(ROWS)
    return table


def check_renewal(server: KeyServer, s3: RecordingProxy, bucket: S3Bucket) -> None:
    """Use a store with keys that expire soon or have expired, then a table with keys that last."""
    catalog = new_catalog(s3, bucket)
    counts = []
    for _ in range(3):
        assert not catalog.list_databases()
        counts.append(len(server.given))
        time.sleep(0.15)  # the library asks at most ten times a second
    # The second request is the first one of the store that the process keeps.
    assert 0 < counts[0] < counts[2]
    assert counts[1] < counts[2]
    assert s3.signed[-1][0] == server.given[-1]
    server.seconds = 3600
    table = new_table(s3, bucket)
    assert table.to_arrow().num_rows == 3
    known = len(server.given)
    time.sleep(0.15)
    assert table.to_arrow().num_rows == 3
    assert len(server.given) == known
    assert s3.keys <= set(server.given)


def of_container(server: KeyServer, directory: Path) -> dict[str, str]:
    (directory / "token").write_text(TOKEN)
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.address}/of-a-container",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(directory / "token"),
    }


def of_container_by_boto3(server: KeyServer, _directory: Path) -> dict[str, str]:
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.address}/of-a-container",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": TOKEN,
    }


def of_task(server: KeyServer, _directory: Path) -> dict[str, str]:
    # The address is always 169.254.170.2; as its proxy, the server gets what is sent there.
    return {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/of-a-task",
        "HTTP_PROXY": server.address,
        "http_proxy": server.address,
    }


def of_machine(server: KeyServer, _directory: Path) -> dict[str, str]:
    return {"AWS_METADATA_ENDPOINT": server.address}


def of_web_identity(server: KeyServer, directory: Path) -> dict[str, str]:
    (directory / "identity").write_text(IDENTITY)
    return {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(directory / "identity"),
        "AWS_ROLE_ARN": ROLE,
        "AWS_ENDPOINT_URL_STS": server.address,
    }


def of_role(server: KeyServer, directory: Path) -> dict[str, str]:
    (directory / "credentials").write_text(STATIC.format("base"))
    (directory / "config").write_text(f"[profile job]\nrole_arn = {ROLE}\nsource_profile = base\n")
    return {"AWS_PROFILE": "job", "AWS_ENDPOINT_URL_STS": server.address, "AWS_REGION": "us-east-1"}


BY_BOTO3 = (of_container_by_boto3, of_role)


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param(of_container, id="container"),
        pytest.param(of_container_by_boto3, id="container, by boto3"),
        pytest.param(of_task, id="task"),
        pytest.param(of_machine, id="machine"),
        pytest.param(of_role, id="role of a profile"),
    ],
)
def test_keys_that_a_server_gives_are_used_and_fetched_again(
    variables: Environment,
    keys: KeyServer,
    s3: RecordingProxy,
    s3_bucket: S3Bucket,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in variables(keys, tmp_path).items():
        environment.setenv(name, value)
    keys.seconds = 60 if variables in BY_BOTO3 else -60  # boto3 refuses keys that have expired already
    check_renewal(keys, s3, s3_bucket)


def test_keys_of_a_web_identity_are_used_and_fetched_again(
    keys_by_tls: KeyServer,
    certificates: Certificates,
    s3: RecordingProxy,
    s3_bucket: S3Bucket,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    environment.setenv("SSL_CERT_FILE", str(certificates.authority))
    for name, value in of_web_identity(keys_by_tls, tmp_path).items():
        environment.setenv(name, value)
    keys_by_tls.seconds = -60
    check_renewal(keys_by_tls, s3, s3_bucket)


@pytest.mark.parametrize("name", ["job", "default"])
def test_keys_and_region_of_a_profile_are_used(
    name: str, s3: RecordingProxy, s3_bucket: S3Bucket, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(STATIC.format(name))
    section = name if name == "default" else f"profile {name}"
    (tmp_path / "config").write_text(f"[{section}]\nregion = eu-west-1\n")
    if name != "default":
        environment.setenv("AWS_PROFILE", name)
    table = new_table(s3, s3_bucket)
    assert table.to_arrow().num_rows == 3
    assert set(s3.signed) == {(OF_FILE, "eu-west-1")}
    assert not any(text in repr(table) for text in (SECRET, OF_FILE.access_key))
    pickled = pickle.dumps(table)
    assert SECRET.encode() not in pickled
    assert OF_FILE.access_key.encode() not in pickled
    assert pickle.loads(pickled).to_arrow().num_rows == 3


def test_keys_of_the_environment_and_of_options_precede_a_profile(
    s3: RecordingProxy, s3_bucket: S3Bucket, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(STATIC.format("default"))
    environment.setenv("AWS_ACCESS_KEY_ID", "KEY-OF-THE-ENVIRONMENT")
    environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert not new_catalog(s3, s3_bucket).list_databases()
    assert s3.keys == {Given("KEY-OF-THE-ENVIRONMENT", "")}
    options = {"s3.endpoint": s3.url, "s3.access-key": "KEY-OF-OPTIONS", "s3.secret-key": SECRET}
    assert not Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", options).list_databases()
    assert s3.signed[-1][0] == Given("KEY-OF-OPTIONS", "")


def test_a_program_of_a_profile_is_run_again_when_its_keys_expire(
    s3: RecordingProxy, s3_bucket: S3Bucket, environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.setenv("AWS_PROFILE", "job")

    def print_keys(number: int, minutes: float) -> None:
        until = datetime.now(UTC) + timedelta(minutes=minutes)
        keys = {"AccessKeyId": f"KEY-{number}", "SecretAccessKey": SECRET, "Expiration": until.isoformat()}
        (tmp_path / "keys.json").write_text(json.dumps({"Version": 1, **keys}))

    print_keys(1, 1)
    (tmp_path / "config").write_text(f"[profile job]\ncredential_process = cat {tmp_path}/keys.json\n")
    catalog = new_catalog(s3, s3_bucket)
    for number, minutes, used in ((1, 1, 1), (1, 1, 1), (2, 60, 2), (3, 60, 2)):
        print_keys(number, minutes)
        time.sleep(0.15)
        assert not catalog.list_databases()
        assert s3.signed[-1][0] == Given(f"KEY-{used}", "")


def _list_databases(catalog: Catalog, found: Any) -> None:
    found.put(catalog.list_databases())


def test_a_forked_process_reads_with_the_profile(s3: RecordingProxy, s3_bucket: S3Bucket, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(STATIC.format("default"))
    catalog = new_catalog(s3, s3_bucket)
    assert not catalog.list_databases()
    before = len(s3.signed)
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    process = context.Process(target=_list_databases, args=(catalog, found))
    process.start()
    assert not found.get(timeout=60)
    process.join(60)
    assert len(s3.signed) > before
    assert s3.keys == {OF_FILE}


def test_other_keys_of_a_profile_are_used_when_the_first_have_expired(
    s3: RecordingProxy, s3_bucket: S3Bucket, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(STATIC.format("default"))
    catalog = new_catalog(s3, s3_bucket)
    assert not catalog.list_databases()
    (tmp_path / "credentials").write_text(STATIC.format("default").replace("OF-A-FILE", "OF-TODAY"))
    s3.expired = OF_FILE.access_key
    with pytest.raises(StorageError, match="the keys have expired"):
        catalog.list_databases()
    assert not catalog.list_databases()
    assert s3.signed[-1][0] == Given("KEY-OF-TODAY", "")


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        pytest.param("", "ProfileNotFound", id="no such profile"),
        pytest.param("[profile job", "ConfigParseError", id="no file of settings"),
        pytest.param(
            f"[profile job]\ncredential_process = sh -c 'echo {SECRET} >&2; exit 1'\n",
            "CredentialRetrievalError",
            id="a program that fails",
        ),
        pytest.param(
            "[profile job]\ncredential_process = sleep 60\n", "no answer within 0 s", id="a program that waits"
        ),
        pytest.param(
            "[profile job]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n[sso-session s]\n"
            "sso_region = us-east-1\nsso_start_url = https://sso.example/start\n",
            "SSOTokenLoadError|TokenRetrievalError|UnauthorizedSSOTokenError",
            id="not signed in",
        ),
    ],
)
def test_a_profile_without_keys_is_one_error_without_secrets(
    config: str,
    cause: str,
    s3: RecordingProxy,
    s3_bucket: S3Bucket,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "config").write_text(config)
    environment.setenv("AWS_PROFILE", "job")
    environment.setenv("HOME", str(tmp_path))
    if "no answer" in cause:
        environment.setattr("penstock.io.object_store.credentials._TIMEOUT_SECONDS", 0.4)
    started = time.monotonic()
    with pytest.raises(StorageError, match=rf"the profile 'job' of AWS gives no keys \(({cause})\); check") as error:
        new_table(s3, s3_bucket)
    assert time.monotonic() - started < MOST_SECONDS
    assert SECRET not in f"{error.value!r} {error.value.__cause__!r} {error.value.__context__!r}"
    assert not error.value.retryable
    assert not s3.signed


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"AWS_PROFILE": "job"},
            r"the profile 'job' of AWS_PROFILE needs the package boto3: pip install 'penstock\[aws\]'",
        ),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/"}, r"_TOKEN_FILE needs the package boto3"),
    ],
)
def test_without_boto3_the_error_says_what_to_install(
    variables: dict[str, str],
    message: str,
    s3: RecordingProxy,
    s3_bucket: S3Bucket,
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setattr("penstock.io.object_store.credentials._LIBRARY", "no_such_library")
    for name, value in variables.items():
        environment.setenv(name, value)
    with pytest.raises(UnsupportedFeatureError, match=message):
        new_table(s3, s3_bucket)
    assert not s3.signed


def test_without_boto3_a_default_profile_is_not_read(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(STATIC.format("default"))
    assert key_source({}) is KeySource.PROFILE
    environment.setattr("penstock.io.object_store.credentials._LIBRARY", "no_such_library")
    assert key_source({}) is KeySource.MACHINE


def test_boto3_is_imported_only_for_a_profile(tmp_path: Path) -> None:
    """In a process of its own, since the other tests import it."""
    code = (
        "import os, sys; from pathlib import Path; from penstock.io.resolve import resolve\n"
        "for text in ('', sys.argv[1]):\n"
        "    Path(os.environ['AWS_SHARED_CREDENTIALS_FILE']).write_text(text) if text else None\n"
        "    resolve('s3://lake/a')\n"
        "    print('boto3' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, STATIC.format("default")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["False", "True"]
    assert (tmp_path / "credentials").is_file()


def test_sources_precede_each_other_as_in_the_tools_of_aws(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sources = [
        (KeySource.MACHINE, {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"}),
        (KeySource.CONTAINER, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1"}),
        (KeySource.MACHINE, {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}),
        (KeySource.PROFILE, {"AWS_PROFILE": "job"}),
        (KeySource.WEB_IDENTITY, {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": ROLE}),
        (KeySource.ENVIRONMENT, {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}),
    ]
    for source, variables in sources:
        for name, value in variables.items():
            environment.setenv(name, value)
        assert key_source({}) is source
    settings = store_settings(parse_address("s3://lake/a")[0], {"s3.access-key": "key", "s3.secret-key": SECRET})
    assert key_source(dict(settings.config)) is KeySource.OPTIONS


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "{file}"},
            "AWS_CONTAINER_CREDENTIALS_FULL_URI gives none",
        ),
        (
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "{file}-2"},
            "the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read",
        ),
        ({"AWS_METADATA_ENDPOINT": "{url}"}, "AWS_METADATA_ENDPOINT gives none"),
        (
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "{file}", "AWS_ROLE_ARN": ROLE, "AWS_ENDPOINT_URL_STS": "{url}"},
            "AWS_ENDPOINT_URL_STS has to begin with https://",
        ),
        (
            {"AWS_WEB_IDENTITY_TOKEN_FILE": "{file}-2", "AWS_ROLE_ARN": ROLE, "AWS_ENDPOINT_URL_STS": "{url}"},
            "the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read",
        ),
    ],
)
def test_a_source_that_gives_no_keys_is_named(
    variables: dict[str, str],
    said: str,
    s3: RecordingProxy,
    s3_bucket: S3Bucket,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    url = f"http://127.0.0.1:{free_port()}"
    for name, value in variables.items():
        environment.setenv(name, value.format(url=url, file=tmp_path / "token"))
    started = time.monotonic()
    with pytest.raises(StorageError, match=rf"no credentials were found \(.*{said}\): give the catalog") as error:
        new_catalog(s3, s3_bucket).list_databases()
    assert time.monotonic() - started < MOST_SECONDS
    assert TOKEN not in str(error.value)
    assert not s3.signed

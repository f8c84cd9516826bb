"""Options for access to object stores; they are given to the catalog, never to a table.

As table options these keys have no effect and cause the warning for ignored keys. Credentials are refused as table
options, because a table's options are stored for all of its readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.options.group import (
    Family,
    Key,
    OptionGroup,
    at_least,
    family,
    option,
    option_fields,
    parse_bool,
    parse_duration_ms,
    parse_int,
    parse_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_CREDENTIALS: Final = frozenset(
    {"s3_access_key", "s3_secret_key", "s3_session_token", "azure_keys", "azure_sas_tokens"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStoreOptions(OptionGroup):
    """Address, credentials and timeouts of a store.

    Missing values are taken from the environment variables that the store's own tools use, or from the machine's role.

    Attributes:
        path_style: whether the bucket is in the path of the URL instead of the host name.
        azure_keys: access keys, by host of the storage account.
        azure_sas_tokens: shared access signatures, by host of the account, or by container and host: ``lake.host``.
        timeout_ms: timeout of one request.
        max_retries: maximal number of retries of one request.
        retry_timeout_ms: time after which a request is not retried any more.
    """

    s3_endpoint: str | None = option(
        "s3.endpoint",
        parse_text,
        None,
        "URL of an S3 server; default: AWS, or AWS_ENDPOINT_URL",
        ("s3a.endpoint", "fs.s3a.endpoint", "fs.s3.endpoint"),
        honoured=False,
    )
    s3_access_key: str | None = option(
        "s3.access-key",
        parse_text,
        None,
        "access key id; default: AWS_ACCESS_KEY_ID, a web identity, a profile, or the machine's role",
        ("s3a.access-key", "s3.access.key", "fs.s3a.access.key", "fs.s3.accessKeyId"),
        honoured=False,
        is_secret=True,
    )
    s3_secret_key: str | None = option(
        "s3.secret-key",
        parse_text,
        None,
        "secret access key; default: AWS_SECRET_ACCESS_KEY, a web identity, a profile, or the machine's role",
        ("s3a.secret-key", "s3.secret.key", "fs.s3a.secret.key", "fs.s3.accessKeySecret"),
        honoured=False,
        is_secret=True,
    )
    s3_session_token: str | None = option(
        "s3.session.token",
        parse_text,
        None,
        "session token of temporary keys; default: AWS_SESSION_TOKEN",
        ("fs.s3a.session.token", "fs.s3.securityToken"),
        honoured=False,
        is_secret=True,
    )
    s3_region: str | None = option(
        "s3.region",
        parse_text,
        None,
        "default: AWS_REGION, AWS_DEFAULT_REGION, the region of the profile, else us-east-1",
        ("s3.endpoint.region", "fs.s3a.endpoint.region", "fs.s3.region"),
        honoured=False,
    )
    path_style: bool | None = option(
        "s3.path.style.access",
        parse_bool,
        None,
        "put the bucket into the path of the URL; default: true if an endpoint is set, else false",
        ("s3.path-style-access", "fs.s3a.path.style.access"),
        honoured=False,
    )
    azure_endpoint: str | None = option(
        "penstock.azure.endpoint",
        parse_text,
        None,
        "URL of an Azure Blob server; default: Azure, or AZURE_STORAGE_ENDPOINT",
        honoured=False,
    )
    azure_account: str | None = option(
        "penstock.azure.account",
        parse_text,
        None,
        "storage account of `az://` locations; default: AZURE_STORAGE_ACCOUNT_NAME",
        honoured=False,
    )
    azure_keys: tuple[tuple[str, str], ...] = family(
        "fs.azure.account.key.",
        "",
        parse_text,
        "access key of an Azure account, named by its host",
        honoured=False,
        is_secret=True,
    )
    azure_sas_tokens: tuple[tuple[str, str], ...] = family(
        "fs.azure.sas.fixed.token.",
        "",
        parse_text,
        "shared access signature for an Azure account, named by its host, or for one container: "
        "`container.host`; an access key has precedence",
        honoured=False,
        is_secret=True,
    )
    timeout_ms: int = option(
        "penstock.object-store.timeout",
        at_least(1, parse_duration_ms),
        30_000,
        "time after which a request without an answer counts as failed",
        honoured=False,
    )
    max_retries: int = option(
        "penstock.object-store.max-retries",
        at_least(0, parse_int),
        10,
        "maximum number of retries of a request that failed or was throttled (503 SlowDown); waits grow, "
        "with a random part",
        honoured=False,
    )
    retry_timeout_ms: int = option(
        "penstock.object-store.retry-timeout",
        at_least(1, parse_duration_ms),
        120_000,
        "maximum time for all retries of a request",
        honoured=False,
    )
    is_gcs_allowed: bool = option(
        "penstock.object-store.experimental-gs",
        parse_bool,
        False,
        "allow `gs://` locations, which are untested",
        honoured=False,
    )


def store_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that configure access to a store."""
    return {key: value for key, value in options.items() if _is_of_store(key)}


def credentials_among(options: Mapping[str, str]) -> list[str]:
    """Return the keys whose values are credentials of a store."""
    return [key for key in options if _field_of(key) in _CREDENTIALS]


def _is_of_store(key: str) -> bool:
    return _field_of(key) is not None


def _field_of(key: str) -> str | None:
    for each in option_fields(ObjectStoreOptions):
        match each.option:
            case Key(name=name, fallbacks=fallbacks):
                if key == name or key in fallbacks:
                    return each.name
            case Family(prefix=prefix):
                if key.startswith(prefix):
                    return each.name
    return None

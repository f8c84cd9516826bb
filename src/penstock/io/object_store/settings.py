"""The settings to open a store, as one value that can be sent to a task."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.io.object_store.address import StoreAddress, StoreKind
from penstock.io.object_store.credentials import profile_region
from penstock.options.object_store import ObjectStoreOptions, store_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_S3_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_AZURE_ENDPOINTS: Final = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_CLOUD_HOSTS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".core.windows.net")
_AZURE_HOSTS: Final = ".core.windows.net"
_AZURE_ACCOUNTS: Final = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_ACCOUNT_NAME")
_CONNECT_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Connection settings of one bucket. Picklable: tasks on other machines open the same store with it.

    Attributes:
        options: the catalog options that these settings are made from. ``options`` and ``config`` may hold keys, and
            are never shown.
        config: settings of the library, sorted.
        is_cloud: the endpoint is AWS's or Azure's own, whose guarantees are known.
    """

    address: StoreAddress
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    is_http: bool = False
    is_cloud: bool = True
    timeout_ms: int = 30_000
    max_retries: int = 10
    retry_timeout_ms: int = 120_000

    @property
    def azure_account(self) -> str | None:
        """The account of a container on Azure; None if it is not known, or for other stores."""
        return dict(self.config).get("account_name")

    @property
    def hadoop_root(self) -> str:
        """The bucket as a location of Hadoop's connectors; of ``az://`` only if the account is known."""
        scheme, account = self.address.scheme, self.azure_account
        if self.address.kind is StoreKind.S3:
            return f"s3a://{self.address.bucket}"
        if scheme != "az" or account is None:
            return self.address.root
        return f"abfs{'' if self.is_http else 's'}://{self.address.bucket}@{account}.dfs{_AZURE_HOSTS}"

    def client_options(self) -> dict[str, Any]:
        """Return the library's connection options."""
        timeout = timedelta(milliseconds=self.timeout_ms)
        return {
            "timeout": timeout,
            "connect_timeout": min(timeout, timedelta(seconds=_CONNECT_SECONDS)),
            "allow_http": self.is_http,
        }


def store_settings(address: StoreAddress, options: Mapping[str, str]) -> StoreSettings:
    """Return the connection settings of a bucket.

    Args:
        options: of the catalog; missing ones are taken by the library from the environment.

    Raises:
        InvalidOptionError: an option is invalid.
        UnsupportedFeatureError: a kind of store that is not tested.
    """
    parsed = ObjectStoreOptions.parse(options)
    match address.kind:
        case StoreKind.S3:
            endpoint = parsed.s3_endpoint or _from_environment(_S3_ENDPOINTS)
            config = _s3_config(parsed, address, endpoint)
        case StoreKind.AZURE:
            endpoint = parsed.azure_endpoint or _from_environment(_AZURE_ENDPOINTS)
            config = _azure_config(parsed, address, endpoint)
        case StoreKind.GCS:
            if not parsed.is_gcs_allowed:
                raise UnsupportedFeatureError(
                    f"location {address.root}: gs:// is not supported, because it is untested; use S3 or "
                    "Azure, or set 'penstock.object-store.experimental-gs' = 'true' to try it with tables that you "
                    "can lose"
                )
            endpoint, config = None, {}
    parts = urlsplit(_checked(endpoint))
    return StoreSettings(
        address=address,
        options=tuple(sorted(store_options(options).items())),
        config=tuple(sorted((key, value) for key, value in config.items() if value is not None)),
        is_http=parts.scheme == "http",
        is_cloud=address.kind is not StoreKind.GCS
        and (endpoint is None or (parts.hostname or "").endswith(_CLOUD_HOSTS)),
        timeout_ms=parsed.timeout_ms,
        max_retries=parsed.max_retries,
        retry_timeout_ms=parsed.retry_timeout_ms,
    )


def _s3_config(parsed: ObjectStoreOptions, address: StoreAddress, endpoint: str | None) -> dict[str, str | None]:
    is_path_style = parsed.path_style if parsed.path_style is not None else endpoint is not None
    if endpoint is not None and not is_path_style:
        # The library uses the endpoint unchanged, so it must include the bucket.
        parts = urlsplit(_checked(endpoint))
        endpoint = f"{parts.scheme}://{address.bucket}.{parts.netloc}"
    _check_in_header("s3.access-key", parsed.s3_access_key)
    _check_in_header("s3.secret-key", parsed.s3_secret_key)
    _check_in_header("s3.session.token", parsed.s3_session_token)
    _check_in_header("s3.region", parsed.s3_region)
    keys = {
        "access_key_id": parsed.s3_access_key,
        "secret_access_key": parsed.s3_secret_key,
        "session_token": parsed.s3_session_token,
    }
    region = parsed.s3_region or _from_environment(("AWS_REGION", "AWS_DEFAULT_REGION")) or profile_region(keys)
    return {
        **keys,
        "endpoint": endpoint,
        "region": region or "us-east-1",
        "virtual_hosted_style_request": str(not is_path_style).lower(),
        # Commits rely on it, so no variable of the environment (AWS_CONDITIONAL_PUT) changes it.
        "conditional_put": "etag",
    }


def _azure_config(parsed: ObjectStoreOptions, address: StoreAddress, endpoint: str | None) -> dict[str, str | None]:
    if endpoint is None and address.host is not None and not address.host.endswith(_AZURE_HOSTS):
        # A cloud of its own, such as that of China; the library knows the hosts of the public one only.
        endpoint = f"https://{address.host.replace('.dfs.', '.blob.', 1)}"
    account = address.account or parsed.azure_account or _from_environment(_AZURE_ACCOUNTS)
    key = _of_account(parsed.azure_keys, account)
    of_container = [
        (name.removeprefix(f"{address.bucket}."), token)
        for name, token in parsed.azure_sas_tokens
        if name.startswith(f"{address.bucket}.")
    ]
    token = _of_account(of_container, account) or _of_account(parsed.azure_sas_tokens, account)
    _check_in_header("fs.azure.sas.fixed.token.*", token)
    return {
        "endpoint": endpoint,
        "account_name": account,
        "account_key": key,
        "sas_token": token if key is None else None,
    }


def _of_account(values: Sequence[tuple[str, str]], account: str | None) -> str | None:
    """Return the value whose host is that of the account."""
    return next((value for host, value in values if account is not None and host.partition(".")[0] == account), None)


def _check_in_header(key: str, value: str | None) -> None:
    """Raise ``InvalidOptionError`` for a value that no header of a request can hold; it is not shown."""
    if value is not None and not (value.isascii() and value.isprintable() and value == value.strip()):
        raise InvalidOptionError(
            f"the value of option '{key}' has a line end, a blank at an end, or a character that none has: check how "
            "it was read"
        )


def _checked(endpoint: str | None) -> str:
    """Return the URL of an endpoint; empty if there is none. Raises ``InvalidOptionError``."""
    if endpoint is None:
        return ""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidOptionError(f"the store's endpoint '{endpoint}' is not a URL: expected 'https://host' or http://")
    return endpoint


def _from_environment(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)

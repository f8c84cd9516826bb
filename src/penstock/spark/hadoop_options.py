"""Access to object stores with Spark's Hadoop settings, so that the same store need not be configured twice.

This module also determines whether Spark's own readers can open a table's files there, which requires Hadoop's
connector on the class path and the same access to the bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from pyspark import SparkContext

from penstock.io.object_store.address import StoreKind
from penstock.io.object_store.credentials import KeySource, key_source
from penstock.io.object_store.file_io import settings_of
from penstock.io.object_store.settings import store_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.io.file_io import FileIO
    from penstock.io.object_store.settings import StoreSettings

    Lookup = Callable[[str], str | None]

# Hadoop's name of a setting, without ``fs.s3a.`` or ``fs.s3a.bucket.<bucket>.``, and the catalog option.
_KEYS: Final = {
    "access.key": "s3.access-key",
    "secret.key": "s3.secret-key",
    "session.token": "s3.session.token",
    "endpoint.region": "s3.region",
    "path.style.access": "s3.path.style.access",
}
_ENDPOINT: Final = "endpoint"
_HAS_TLS: Final = "connection.ssl.enabled"
_PROVIDER: Final = "aws.credentials.provider"
# Which S3A's own list of providers leaves out.
_NOT_BY_DEFAULT: Final = frozenset({KeySource.PROFILE, KeySource.WEB_IDENTITY})
# AWS itself, for which no endpoint option is needed.
_CENTRAL: Final = ("s3.amazonaws.com", "https://s3.amazonaws.com")
_AZURE_ACCOUNT: Final = "penstock.azure.account"
_AZURE_ENDPOINT: Final = "penstock.azure.endpoint"
# Settings of Azure that can be made for one container.
_CONTAINER_KEYS: Final = ("sas.fixed.token", "sas.token.provider.type")
_DFS_HOSTS: Final = ".dfs.core.windows.net"
# Hadoop's connector for each store, and the JAR that has it.
_CONNECTORS: Final = {
    StoreKind.S3: ("org.apache.hadoop.fs.s3a.S3AFileSystem", "hadoop-aws"),
    StoreKind.AZURE: ("org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem", "hadoop-azure"),
}


def why_not_by_spark(file_io: FileIO) -> str | None:
    """Return why Spark's readers cannot open files of an object store; None if they can, or for other storages.

    They can open files on S3 or Azure if Hadoop's connector is on the class path and has the same access to the bucket
    as the table.
    """
    settings = settings_of(file_io)
    if settings is None:
        return None
    kind = settings.address.kind
    if kind not in _CONNECTORS:
        return "its files are on an object store other than S3 and Azure"
    connector, jar = _CONNECTORS[kind]
    context = SparkContext._active_spark_context  # noqa: SLF001 - the public method would start one
    if context is None or not context._jvm.org.apache.spark.util.Utils.classIsLoadable(connector):  # type: ignore[union-attr] # noqa: SLF001 - see above
        reason: str | None = f"there is no {jar} on Spark's class path"
    else:
        lookup = _lookup()
        reason = why_not_with(settings, options_of(settings, lookup)) or why_not_by_keys(settings, lookup)
    return None if reason is None else f"its files are on {kind}, and {reason}"


def why_not_with(settings: StoreSettings, known: Mapping[str, str]) -> str | None:
    """Return why Hadoop's settings do not give the access that the catalog has; None if they do.

    Args:
        known: Hadoop's settings as catalog options, see ``options_of``.
    """
    is_s3 = settings.address.kind is StoreKind.S3
    return _why_not_by_s3a(settings, known) if is_s3 else _why_not_by_abfs(settings, known)


def why_not_by_keys(settings: StoreSettings, lookup: Lookup) -> str | None:
    """Return why Hadoop's connector does not find the keys that this process takes from its environment.

    Args:
        lookup: see ``options_of``. A class that provides keys is taken to find them.
    """
    if settings.address.kind is not StoreKind.S3:
        return None
    source = key_source(dict(settings.config))
    if source not in _NOT_BY_DEFAULT or _of_bucket(settings, lookup, _PROVIDER):
        return None
    return f"spark.hadoop.fs.s3a.{_PROVIDER} is not set, and the keys are those of {source}"


def _why_not_by_s3a(settings: StoreSettings, known: Mapping[str, str]) -> str | None:
    # Hadoop's default; Penstock's default depends on the endpoint.
    known = {"s3.path.style.access": "false", **known}
    if store_settings(settings.address, known).config != settings.config:
        return "spark.hadoop.fs.s3a has other settings for the bucket than the catalog"
    if dict(settings.config).get("endpoint") is not None and "s3.endpoint" not in known:
        return "spark.hadoop.fs.s3a.endpoint is not set"
    return None


def _why_not_by_abfs(settings: StoreSettings, known: Mapping[str, str]) -> str | None:
    if settings.azure_account is None:
        return f"their account is not known: give the catalog '{_AZURE_ACCOUNT}'"
    if not known.keys() - {_AZURE_ENDPOINT}:
        # Nothing shows whether access by OAuth, or by a class that provides keys, is the catalog's.
        return "spark.hadoop.fs.azure has no account key and no fixed SAS token for the container"
    if store_settings(settings.address, {_AZURE_ACCOUNT: settings.azure_account, **known}).config != settings.config:
        return "spark.hadoop.fs.azure has other settings for the container than the catalog"
    endpoint, own_host = dict(settings.config).get("endpoint"), (settings.address.host or "").replace(".dfs.", ".blob.")
    if endpoint is not None and urlsplit(endpoint).hostname != own_host and _AZURE_ENDPOINT not in known:
        return "spark.hadoop.fs.azure.abfs.endpoint is not set"
    return None


def hadoop_store_options(settings: StoreSettings) -> dict[str, str]:
    """Return catalog options for a bucket or container; empty without a Spark session in this process.

    Only settings that were made explicitly are returned, not Hadoop's defaults. Settings of the bucket have precedence.
    """
    return options_of(settings, _lookup())


def _lookup() -> Lookup:
    context = SparkContext._active_spark_context  # noqa: SLF001 - the public method would start one
    if context is None or context._jsc is None:  # noqa: SLF001 - the only way to Hadoop's settings
        return lambda _key: None
    hadoop = context._jsc.hadoopConfiguration()  # noqa: SLF001 - see above

    def lookup(key: str) -> str | None:
        sources = hadoop.getPropertySources(key)
        if sources is None or list(sources)[-1:] == ["core-default.xml"]:
            return None
        return cast("str | None", hadoop.get(key))

    return lookup


def options_of(settings: StoreSettings, lookup: Lookup) -> dict[str, str]:
    """Return catalog options for a bucket or container.

    Args:
        lookup: returns a Hadoop setting, None if it is not set explicitly.
    """
    return (
        _options_of_s3a(settings, lookup)
        if settings.address.kind is StoreKind.S3
        else _options_of_abfs(settings, lookup)
    )


def _options_of_s3a(settings: StoreSettings, lookup: Lookup) -> dict[str, str]:
    def find(name: str) -> str | None:
        return _of_bucket(settings, lookup, name)

    found = {own: value for name, own in _KEYS.items() if (value := find(name))}
    endpoint = find(_ENDPOINT)
    if endpoint and endpoint not in _CENTRAL:
        scheme = "http" if (find(_HAS_TLS) or "").lower() == "false" else "https"
        found["s3.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return found


def _of_bucket(settings: StoreSettings, lookup: Lookup, name: str) -> str | None:
    return lookup(f"fs.s3a.bucket.{settings.address.bucket}.{name}") or lookup(f"fs.s3a.{name}")


def _options_of_abfs(settings: StoreSettings, lookup: Lookup) -> dict[str, str]:
    account, bucket = settings.azure_account, settings.address.bucket
    host = settings.hadoop_root.partition("@")[2]
    if account is None or not host:
        return {}

    def find(name: str) -> str | None:
        of_container = lookup(f"fs.azure.{name}.{bucket}.{host}") if name in _CONTAINER_KEYS else None
        return of_container or lookup(f"fs.azure.{name}.{host}") or lookup(f"fs.azure.{name}")

    found: dict[str, str | None] = {}
    match find("account.auth.type") or "SharedKey":
        case "SharedKey" if find("account.keyprovider") is None:
            found[f"fs.azure.account.key.{host}"] = find("account.key")
        case "SAS" if find("sas.token.provider.type") is None:
            found[f"fs.azure.sas.fixed.token.{bucket}.{host}"] = find("sas.fixed.token")
    # The connector ignores an endpoint without a port, and can put only the account of such a host into the URL.
    endpoint = find("abfs.endpoint")
    if endpoint and ":" in endpoint and host.endswith(_DFS_HOSTS):
        is_http = settings.address.scheme != "abfss" and (lookup("fs.azure.always.use.https") or "").lower() == "false"
        found[_AZURE_ENDPOINT] = f"http{'' if is_http else 's'}://{endpoint}/{account}"
    return {key: value for key, value in found.items() if value}

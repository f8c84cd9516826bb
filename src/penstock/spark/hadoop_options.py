"""Access to S3 with Spark's Hadoop settings, so that the same store need not be configured twice.

This module also determines whether Spark's own readers can open a table's files there, which requires Hadoop's
connector on the class path and the same access to the bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pyspark import SparkContext

from penstock.io.object_store.address import StoreKind
from penstock.io.object_store.settings import store_settings
from penstock.io.settings import settings_of_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO

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
# AWS itself, for which no endpoint option is needed.
_CENTRAL: Final = ("s3.amazonaws.com", "https://s3.amazonaws.com")
# Hadoop's connector for S3, in the JAR hadoop-aws.
_CONNECTOR: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def why_not_by_spark(file_io: FileIO) -> str | None:
    """Return why Spark's readers cannot open files of an object store; None if they can, or for other storages.

    They can open files on S3 if Hadoop's connector is on the class path and has the same access to the bucket as the
    table.
    """
    settings = settings_of_store(file_io)
    if settings is None:
        return None
    if settings.address.kind is not StoreKind.S3:
        return "its files are on an object store other than S3"
    context = SparkContext._active_spark_context  # noqa: SLF001 - the public method would start one
    if context is None or not context._jvm.org.apache.spark.util.Utils.classIsLoadable(_CONNECTOR):  # type: ignore[union-attr] # noqa: SLF001 - see above
        return "its files are on S3, and there is no hadoop-aws on Spark's class path"
    # Hadoop's default; Penstock's default depends on the endpoint.
    known = {"s3.path.style.access": "false", **hadoop_store_options(settings.address.bucket)}
    if store_settings(settings.address, known).config != settings.config:
        return "its files are on S3, and spark.hadoop.fs.s3a has other settings for the bucket than the catalog"
    if dict(settings.config).get("endpoint") is not None and "s3.endpoint" not in known:
        return "its files are on S3, and spark.hadoop.fs.s3a.endpoint is not set"
    return None


def hadoop_store_options(bucket: str) -> dict[str, str]:
    """Return catalog options for a bucket; empty without a Spark session in this process.

    Only settings that were made explicitly are returned, not Hadoop's defaults. Settings of the bucket have precedence.
    """
    context = SparkContext._active_spark_context  # noqa: SLF001 - the public method would start one
    if context is None or context._jsc is None:  # noqa: SLF001 - the only way to Hadoop's settings
        return {}
    hadoop = context._jsc.hadoopConfiguration()  # noqa: SLF001 - see above

    def lookup(key: str) -> str | None:
        sources = hadoop.getPropertySources(key)
        if sources is None or list(sources)[-1:] == ["core-default.xml"]:
            return None
        return cast("str | None", hadoop.get(key))

    return options_of(bucket, lookup)


def options_of(bucket: str, lookup: Lookup) -> dict[str, str]:
    """Return catalog options for a bucket.

    Args:
        lookup: returns a Hadoop setting, None if it is not set explicitly.
    """

    def find(name: str) -> str | None:
        return lookup(f"fs.s3a.bucket.{bucket}.{name}") or lookup(f"fs.s3a.{name}")

    found = {own: value for name, own in _KEYS.items() if (value := find(name))}
    endpoint = find(_ENDPOINT)
    if endpoint and endpoint not in _CENTRAL:
        scheme = "http" if (find(_HAS_TLS) or "").lower() == "false" else "https"
        found["s3.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return found

"""Access to S3 as Spark's Hadoop settings have it, so that nobody has to configure the same store twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Callable

    Lookup = Callable[[str], str | None]

# What Hadoop calls a setting, after ``fs.s3a.`` or ``fs.s3a.bucket.<bucket>.``, and what it is here.
_KEYS: Final = {
    "access.key": "s3.access-key",
    "secret.key": "s3.secret-key",
    "session.token": "s3.session.token",
    "endpoint.region": "s3.region",
    "path.style.access": "s3.path.style.access",
}
_ENDPOINT: Final = "endpoint"
_HAS_TLS: Final = "connection.ssl.enabled"
# AWS itself, which needs no endpoint here.
_CENTRAL: Final = ("s3.amazonaws.com", "https://s3.amazonaws.com")


def hadoop_store_options(bucket: str) -> dict[str, str]:
    """Return options of a catalog for a bucket; empty without a Spark session in this process.

    Only what somebody has set is returned, not Hadoop's defaults. Settings of the bucket win.
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
    """Return options of a catalog for a bucket.

    Args:
        lookup: returns a setting of Hadoop, None if nobody has set it.
    """

    def find(name: str) -> str | None:
        return lookup(f"fs.s3a.bucket.{bucket}.{name}") or lookup(f"fs.s3a.{name}")

    found = {own: value for name, own in _KEYS.items() if (value := find(name))}
    endpoint = find(_ENDPOINT)
    if endpoint and endpoint not in _CENTRAL:
        scheme = "http" if (find(_HAS_TLS) or "").lower() == "false" else "https"
        found["s3.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return found

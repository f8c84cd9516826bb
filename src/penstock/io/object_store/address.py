"""Parse locations on object stores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from penstock.errors import InvalidOptionError


class StoreKind(StrEnum):
    """The API of a store."""

    S3 = "S3"
    AZURE = "Azure"
    GCS = "GCS"


SCHEMES: Final = {
    "s3": StoreKind.S3,
    "s3a": StoreKind.S3,
    "az": StoreKind.AZURE,
    "abfs": StoreKind.AZURE,
    "abfss": StoreKind.AZURE,
    "gs": StoreKind.GCS,
}
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*|\$[a-z]+")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_EXAMPLES: Final = {
    StoreKind.S3: "s3://bucket/path",
    StoreKind.AZURE: "abfss://container@account.dfs.core.windows.net/path or az://container/path",
    StoreKind.GCS: "gs://bucket/path",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """Address of a bucket.

    Attributes:
        scheme: as in the user's location; paths keep it.
        bucket: name of the bucket or container.
        host: host of an Azure account, if the location contains it.
    """

    kind: StoreKind
    scheme: str
    bucket: str
    host: str | None = None

    @property
    def root(self) -> str:
        """The bucket as a location, without a trailing slash."""
        at_host = f"@{self.host}" if self.host else ""
        return f"{self.scheme}://{self.bucket}{at_host}"

    @property
    def account(self) -> str | None:
        """The Azure account that is part of the host name."""
        return self.host.partition(".")[0] if self.host else None


def parse_address(location: str) -> tuple[StoreAddress, str]:
    """Split a location whose scheme is one of ``SCHEMES``.

    Returns:
        The bucket, and the location without redundant slashes.

    Raises:
        InvalidOptionError: the location has no bucket, or a path that no object can have.
    """
    scheme, _, rest = location.partition(":")
    kind = SCHEMES[scheme.lower()]
    authority, _, path = rest.removeprefix("//").partition("/")
    bucket, at, host = authority.partition("@")
    is_host_right = not at or (kind is StoreKind.AZURE and _HOST.fullmatch(host) is not None)
    if not rest.startswith("//") or _BUCKET.fullmatch(bucket) is None or not is_host_right:
        # The message does not quote the location: a user may have written a key into it, which must not be logged.
        raise InvalidOptionError(f"location '{scheme}:...' names no bucket: expected {_EXAMPLES[kind]}")
    address = StoreAddress(kind=kind, scheme=scheme.lower(), bucket=bucket, host=host or None)
    parts = [part for part in path.split("/") if part]
    if ".." in parts or "." in parts:
        raise InvalidOptionError(f"location {address.root}/{path} has a '.' or '..' in it: no object has such a path")
    return address, "/".join([address.root, *parts])

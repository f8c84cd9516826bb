"""Map a user's location to the storage that holds it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.io.hdfs import SCHEME as HDFS
from penstock.io.hdfs import hdfs_location
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.io.object_store.address import SCHEMES, parse_address
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.object_store.settings import store_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO


def resolve(location: str, options: Mapping[str, str] | None = None) -> tuple[FileIO, str]:
    """Return the storage of a location, and the location in the form of that storage.

    Args:
        location: a local path (relative to the working directory, or from ``~``), ``file:///path`` with
            percent-encoding, ``file:/path`` taken literally, which is how Hadoop and Spark print their paths,
            ``memory://name/path``, or ``s3://bucket/path`` and the other schemes of ``SCHEMES`` and
            ``hdfs://host:port/path``, taken literally.
        options: of the catalog; used for object stores and HDFS.

    Returns:
        The storage and the path without a trailing slash. Local paths are absolute; links are not resolved.

    Raises:
        InvalidOptionError: the location is empty, a memory store has no name, or a bucket or an option is invalid.
        UnsupportedFeatureError: a storage that Penstock does not support, or whose library is not installed; or a file
            of another host.
    """
    scheme, colon, rest = location.partition(":")
    kind = scheme.lower() if colon and _is_scheme(scheme) else ""
    match kind:
        case "" if location.strip():
            return LocalFileIO(durable=True), _absolute(location)
        case "":
            raise InvalidOptionError("the location is empty: expected a path such as '/data/warehouse'")
        case "file":
            return LocalFileIO(durable=True), _absolute(_file_path(location, rest))
        case "memory":
            name, _, path = rest.removeprefix("//").partition("/")
            if not name:
                raise InvalidOptionError(f"location '{location}' has no store: expected 'memory://<name>/<path>'")
            return MemoryFileIO(name), f"memory://{name}/{path}".rstrip("/")
        case _ if kind in SCHEMES:
            address, path = parse_address(location)
            if importlib.util.find_spec("obstore") is None:
                raise UnsupportedFeatureError(
                    f"location '{location}': object stores need the package obstore: pip install 'penstock[cloud]'"
                )
            return ObjectFileIO(store_settings(address, options or {})), path
        case _ if kind == HDFS:
            return hdfs_location(location, options or {})
        case _:
            raise UnsupportedFeatureError(
                f"location '{location}': storage '{kind}' is not built in; use a local path, file://, s3://, az://, "
                "abfss:// or hdfs://, or mount the storage and give the path of the mount"
            )


def _is_scheme(text: str) -> bool:
    # RFC 3986, section 3.1; one letter would be a Windows drive.
    return len(text) > 1 and text[0].isalpha() and text.isascii() and text.replace("+", "").replace("-", "").isalnum()


def _file_path(location: str, rest: str) -> str:
    host, slash, path = rest.removeprefix("//").partition("/")
    if rest and not rest.startswith("//"):
        return rest
    if host not in {"", "localhost"}:
        raise UnsupportedFeatureError(
            f"location '{location}' names the host '{host}': mount its files and give the path of the mount, "
            "or write file:/// with three slashes for a path of this machine"
        )
    if not slash:
        raise InvalidOptionError(f"location '{location}' has no path: expected 'file:///data/warehouse'")
    return unquote(f"/{path}")


def _absolute(path: str) -> str:
    if "\0" in path:
        raise InvalidOptionError(f"location {path!a} has a NUL in it, which no path has")
    absolute = str(Path(path).expanduser().absolute())
    return _without_dots("/" + absolute.lstrip("/"))


def _without_dots(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)

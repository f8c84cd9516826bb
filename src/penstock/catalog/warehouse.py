"""Open a catalog: a directory of databases, or one on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.directory import open_directory
from penstock.catalog.rest import open_server
from penstock.errors import UnsupportedFeatureError
from penstock.io.rest.connect import FILESYSTEM, METASTORE, REST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.catalog.backend import Backend

BACKENDS: Final[Mapping[str, Callable[[str, Mapping[str, str]], Backend]]] = {
    FILESYSTEM: open_directory,
    REST: open_server,
}
"""By the value of ``metastore``."""


def open_warehouse(location: str, options: Mapping[str, str] | None = None) -> Backend:
    """Open a catalog without reading or creating anything, except for a request to a server.

    Args:
        location: a path or URI; with ``metastore = rest`` the name of the catalog on its server.
        options: catalog options.

    Raises:
        InvalidOptionError: the location is not valid.
        UnsupportedFeatureError: there is no built-in support for the storage or the kind of catalog.
        StorageError: the server does not answer.
    """
    options = options or {}
    kind = options.get(METASTORE, FILESYSTEM)
    if kind not in BACKENDS:
        raise UnsupportedFeatureError(
            f"option '{METASTORE}' = '{kind}': a catalog is a directory ('{FILESYSTEM}') or a REST server ('{REST}'); "
            "for the tables of another one, give the directory above their databases as the warehouse"
        )
    return BACKENDS[kind](location, options)

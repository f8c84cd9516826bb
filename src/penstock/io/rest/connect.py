"""Connect to the server of a REST catalog: options to a ``RestServer``.

Source:
    Paimon ``api:rest/RESTCatalogOptions.java``, ``RESTApi.java``, ``auth/BearTokenAuthProvider.java``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.io.rest.server import RestServer
from penstock.options.metadata import MetadataOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

METASTORE: Final = "metastore"
REST: Final = "rest"
FILESYSTEM: Final = "filesystem"
_URI: Final = "uri"
_HEADER: Final = "header."
_PROVIDER: Final = "token.provider"
_TOKEN: Final = "token"  # noqa: S105 - the name of an option
_BEARER: Final = "bear"


def connect(warehouse: str, options: Mapping[str, str]) -> tuple[RestServer, dict[str, str]]:
    """Request the configuration of a server.

    Args:
        warehouse: name of the catalog on the server; may be empty if the server has only one.
        options: of the catalog, as Paimon names them.

    Returns:
        The server, and the options merged with the server's overrides and defaults, except those that only the user
        sets (``RestServer.options``).

    Raises:
        InvalidOptionError: an option is missing or wrong, or the server does not know the warehouse.
        UnsupportedFeatureError: another kind of token, or the library for requests is not installed.
        StorageError: the server does not answer, or rejects the token.
    """
    first = RestServer(uri=_uri(options), headers=_headers(options), limits=MetadataOptions.parse(options))
    params = {"warehouse": warehouse} if warehouse else {}
    found = first.get("config", about=f"warehouse '{warehouse}'", params=params)
    defaults, overrides = (first.options(found.get(key)) for key in ("defaults", "overrides"))
    merged = {**defaults, **options, **overrides}
    return replace(first, prefix=merged.get("prefix", ""), headers=_headers(merged)), merged


def _uri(options: Mapping[str, str]) -> str:
    uri = options.get(_URI, "").strip().rstrip("/")
    uri = uri if "://" in uri or not uri else f"http://{uri}"
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidOptionError(
            f"option '{_URI}' = '{options.get(_URI, '')}': 'metastore' = 'rest' needs the address of the server, such "
            "as 'http://localhost:8080'"
        )
    if parts.username or parts.password:
        raise InvalidOptionError(f"option '{_URI}' holds a user or a password; give 'token' instead")
    return uri


def _headers(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    headers = {key.removeprefix(_HEADER): value for key, value in options.items() if key.startswith(_HEADER)}
    for name, value in headers.items():
        if not (name and _is_in_header(name) and _is_in_header(value)):
            raise InvalidOptionError(
                f"option '{_HEADER}{name}' is not a request header: neither name nor value may have a line end, or "
                "a character that is not ASCII"
            )
    provider = options.get(_PROVIDER)
    if provider is None and _TOKEN not in options:
        return tuple(headers.items())
    if provider is not None and provider != _BEARER:
        raise UnsupportedFeatureError(
            f"a token provider '{provider}': only '{_BEARER}', with option '{_TOKEN}', is built in"
        )
    token = options.get(_TOKEN, "").strip()
    if not token or not _is_in_header(token):
        raise InvalidOptionError(
            f"option '{_TOKEN}' is missing or no token: the provider '{_BEARER}' needs one, on one line"
        )
    return (*headers.items(), ("Authorization", f"Bearer {token}"))


def _is_in_header(text: str) -> bool:
    return text.isascii() and text.isprintable()

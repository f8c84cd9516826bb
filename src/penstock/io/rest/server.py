"""Requests to the server of a REST catalog, by the library requests (``penstock[rest]``).

Source:
    Paimon ``docs/static/rest-catalog-open-api.yaml``, ``api:rest/RESTApi.java``, ``api:rest/DefaultErrorHandler.java``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NotFoundError,
    OptionWarning,
    StorageError,
    TableStoreError,
    UnsupportedFeatureError,
    warn,
)
from penstock.format.text.json import load_json
from penstock.options.external import is_of_user
from penstock.options.metadata import ANSWER_KEY, PAGES_KEY, MetadataOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from requests import Response, Session

Body: TypeAlias = dict[str, Any]

_LIBRARY: Final = "requests"
_VERSION: Final = "v1"
_TIMEOUT_SECONDS: Final = (2, 60)  # to connect, and between two bytes of a response
_BUSY: Final = (429, 503)
_PASSING: Final = (429, 500, 502, 503, 504)
# An unreachable server is reported within ten seconds, a busy one after about ten.
_CONNECT_TRIES: Final = 3
_BUSY_TRIES: Final = 5
_WAIT_SECONDS: Final = 0.2
_MAX_WAIT_SECONDS: Final = 10
_ERRORS: Final[dict[int, tuple[type[TableStoreError], str]]] = {
    400: (InvalidOptionError, "it rejects the content of the request; correct it"),
    401: (StorageError, "it does not recognize the credentials; use the token provider 'bear' and a valid token"),
    403: (StorageError, "this user lacks the permission; have it granted on the server"),
    405: (UnsupportedFeatureError, "this server does not support that"),
    409: (AlreadyExistsError, "the name is taken; choose another one"),
    501: (UnsupportedFeatureError, "this server does not support that"),
}
_NO_CATALOG: Final = (StorageError, "that is not an answer of a Paimon REST catalog; check option 'uri'")
_ELEMENTS_A_PAGE: Final = 100
_MAX_TEXT: Final = 300
_CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response of a server, whatever its status.

    Attributes:
        body: the JSON object; empty if there is none.
        text: beginning of a body that is not a JSON object.
    """

    status: int
    body: Body
    text: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    @property
    def resource_type(self) -> str:
        """Kind of object that the error refers to, such as ``TABLE`` or ``SNAPSHOT``."""
        return str(self.body.get("resourceType") or "")[:_MAX_TEXT]

    @property
    def message(self) -> str:
        """Return the server's error message."""
        return str(self.body.get("message") or self.text or "no message")[:_MAX_TEXT]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestServer:
    """The server of a REST catalog, as a value. Picklable.

    Attributes:
        uri: without a slash at the end.
        prefix: of this catalog in the paths of requests, from the server's configuration.
        headers: of each request; they may contain a token.
        limits: of its responses.
    """

    uri: str
    prefix: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    limits: MetadataOptions = field(default=MetadataOptions(), repr=False)

    def get(self, *path: str, about: str, params: Mapping[str, str] | None = None) -> Body:
        """Send a GET request. Raises as ``check``."""
        return self.check(self.send("GET", *path, about=about, params=params), about)

    def post(self, *path: str, about: str, body: Body) -> Body:
        """Send a POST request. Raises as ``check``."""
        return self.check(self.send("POST", *path, about=about, body=body), about)

    def delete(self, *path: str, about: str) -> None:
        """Send a DELETE request. Raises as ``check``."""
        self.check(self.send("DELETE", *path, about=about), about)

    def names(self, *path: str, key: str, about: str) -> Iterator[str]:
        """Yield the names listed under a key, from all pages.

        Raises:
            StorageError: the list is no list of names, or has too many pages; or as ``check``.
        """
        params = {"maxResults": str(_ELEMENTS_A_PAGE)}
        for _ in range(self.limits.max_pages):
            page = self.get(*path, about=about, params=params)
            names = page.get(key) or []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise StorageError(
                    f"{about}: the REST catalog at {self.uri} answered with something other than names under '{key}'; "
                    "check option 'uri', and the version of the server"
                )
            yield from names
            token = page.get("nextPageToken")
            if not token or token == params.get("pageToken"):
                return
            params["pageToken"] = str(token)
        raise StorageError(
            f"{about}: the REST catalog at {self.uri} has more than {self.limits.max_pages} pages of names, or lists "
            f"them without end; if there are so many, raise the option '{PAGES_KEY}' of the catalog"
        )

    def options(self, found: object) -> dict[str, str]:
        """Return the options that an answer of the server contains, without those that only the user sets.

        Warns with ``OptionWarning`` of those that have no effect.
        """
        pairs = found.items() if isinstance(found, dict) else ()
        options = {str(key): str(value) for key, value in pairs if value is not None}
        ignored = [key for key in options if is_of_user(key)]
        if ignored:
            text = (
                f"the REST catalog at {self.uri} sets {ignored}, which has no effect: only the user of the catalog "
                "sets this; if you want it, give it as an option of the catalog"
            )
            warn(text, OptionWarning)
        return {key: value for key, value in options.items() if key not in ignored}

    def send(
        self,
        method: str,
        *path: str,
        about: str,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> Answer:
        """Send a request, with retries while the server is busy; changes are retried only if they were not begun.

        Args:
            path: parts below the catalog's prefix, not escaped.
            about: object of the request, for messages.

        Raises:
            StorageError: no response; a change may have been made.
        """
        parts = [_VERSION, *([self.prefix] if self.prefix else []), *(quote(part, safe="") for part in path)]
        session = _session(os.getpid(), _is_safe(method))
        headers = {"Accept": "application/json", **dict(self.headers)}
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        try:
            with session.request(
                method,
                f"{self.uri}/{'/'.join(parts)}",
                params=dict(params or {}),
                data=data,
                headers=headers,
                timeout=_TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as found:
                received = _received(found, self.limits.max_answer_bytes)
        except (OSError, ValueError) as error:  # all errors of the library are an OSError or a ValueError
            raise StorageError(
                f"{about}: the REST catalog at {self.uri} did not answer ({_cause(error)}); check option 'uri', and "
                "that the server runs and can be reached from here",
                True,  # noqa: FBT003 - positional, so that pickling works
            ) from error
        if received is None:
            raise StorageError(
                f"{about}: the REST catalog at {self.uri} answered with more than {self.limits.max_answer_bytes} "
                f"bytes; check option 'uri', or raise the option '{ANSWER_KEY}' of the catalog"
            )
        return _answer(found.status_code, received)

    def check(self, answer: Answer, about: str) -> Body:
        """Return the body of a successful response.

        Raises:
            NotFoundError: 404.
            AlreadyExistsError: 409.
            InvalidOptionError: 400.
            UnsupportedFeatureError: 405 and 501.
            StorageError: 401, 403, server errors, and responses that are not from a REST catalog.
        """
        if answer.is_good and not answer.text:
            return answer.body
        raise self.error(answer, about)

    def error(self, answer: Answer, about: str) -> TableStoreError:
        """Return the error for a response."""
        said = f"{about}: the REST catalog at {self.uri} answered {answer.status} ({answer.message})"
        if answer.status == 404:
            what = answer.resource_type.lower() or "resource"
            return NotFoundError(f"{said}: there is no such {what}; check the name")
        if answer.status in _PASSING:
            return StorageError(f"{said}: the server has failed or is busy; see its log, or try again", True)  # noqa: FBT003
        kind, cure = _ERRORS.get(answer.status, _NO_CATALOG)
        return kind(f"{said}: {cure}")


def _is_safe(method: str) -> bool:
    return method == "GET"


def _received(response: Response, max_bytes: int) -> bytes | None:
    """Return the body of a response, uncompressed; None if it is larger than ``max_bytes``."""
    received = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        received += chunk
        if len(received) > max_bytes:
            return None
    return bytes(received)


def _answer(status: int, data: bytes) -> Answer:
    if not data.strip():
        return Answer(status=status, body={})
    try:
        body = load_json(data)
    except ValueError:
        body = None
    if isinstance(body, dict):
        return Answer(status=status, body=body)
    return Answer(status=status, body={}, text=data[:_MAX_TEXT].decode(errors="replace"))


def _cause(error: Exception) -> str:
    """Return the innermost cause, on which a user can act."""
    cause: BaseException = error
    while (below := cause.__cause__ or cause.__context__) is not None:
        cause = below
    return str(cause) or type(cause).__name__


@lru_cache(maxsize=4)
def _session(_process_id: int, is_safe: bool) -> Session:  # noqa: FBT001 - a key of the cache
    """Return the HTTP session for repeatable requests, or for others; shared by the threads of a process.

    A forked process makes its own: on the connections of its parent it would receive the responses to the parent.
    """
    if importlib.util.find_spec(_LIBRARY) is None:
        raise UnsupportedFeatureError("'metastore' = 'rest' needs the package requests: pip install 'penstock[rest]'")
    library = importlib.import_module(_LIBRARY)
    retry = _retry_class()(
        total=None,
        connect=_CONNECT_TRIES,
        read=_CONNECT_TRIES if is_safe else 0,
        other=0,  # such as a certificate that is not trusted; without it there is no end of them
        status=_BUSY_TRIES,
        status_forcelist=_PASSING if is_safe else _BUSY,
        allowed_methods=None,
        backoff_factor=_WAIT_SECONDS,
        backoff_jitter=_WAIT_SECONDS,
        backoff_max=_MAX_WAIT_SECONDS,
        raise_on_status=False,
    )
    session: Session = library.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, library.adapters.HTTPAdapter(max_retries=retry))
    # Credentials in a user's .netrc would replace the token.
    session.auth = _no_auth
    return session


def _retry_class() -> Any:  # noqa: ANN401 - of a library that is imported late
    """Return the class of the library with a limit for the wait that a server asks for (``Retry-After``)."""

    class Retry(importlib.import_module("urllib3").Retry):  # type: ignore[misc] # imported late
        def get_retry_after(self, response: Any) -> float | None:  # noqa: ANN401 - see above
            seconds = super().get_retry_after(response)
            return None if seconds is None else min(seconds, _MAX_WAIT_SECONDS)

    return Retry


def _no_auth(request: Any) -> Any:  # noqa: ANN401 - of a library that is imported late
    return request

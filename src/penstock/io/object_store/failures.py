"""Map failures of a store to Penstock's errors.

Only the status, the store's error code and the kind of failure are kept from the library's message: the rest is long
text with URLs, which may contain signatures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.errors import NotFoundError, StorageError

_STATUS: Final = re.compile(r"status code: (\d{3})(?: ([A-Za-z ]{1,40}))?")
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,80})</Code>")
_KIND: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"})
_CONFLICTS: Final = frozenset({"ConditionalRequestConflict", "OperationAborted"})
_DENIED: Final = frozenset({401, 403})
_DENIED_CODES: Final = frozenset({"InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
_REDIRECT: Final = "redirect without LOCATION"
_THROTTLED: Final = frozenset({408, 409, 429})
_NO_CREDENTIALS: Final = re.compile(r"credential|metadata/|169\.254\.169\.254|WebIdentity", re.IGNORECASE)
_NO_ACCOUNT: Final = "Account must be specified"
_NETWORK: Final = ("error sending request", "HttpError", "operation timed out", "TimedOut", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed request: the store's answer, or that none arrived.

    Attributes:
        name: class name of the library's exception.
        status: HTTP status; None if no answer arrived.
        code: the store's error code.
    """

    name: str
    status: int | None
    code: str | None
    text: str

    @property
    def is_missing(self) -> bool:
        """Whether the object does not exist, in an existing bucket."""
        return self.name == "FileNotFoundError" and self.code not in _NO_BUCKET

    @property
    def is_there_already(self) -> bool:
        """Whether a conditional put found an existing object."""
        return self.name in {"AlreadyExistsError", "PreconditionError"} and not self.is_conflict

    @property
    def is_conflict(self) -> bool:
        """Whether another conditional put was in progress, so the winner is not decided yet: retry."""
        return self.code in _CONFLICTS

    @property
    def is_empty_range(self) -> bool:
        """Whether a range of an empty object was requested."""
        return self.status == 416 or "non-partial response" in self.text

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        if self.status is not None:
            return self.status >= 500 or self.status in _THROTTLED
        is_final = self._lacks_credentials or self._is_redirect or _NO_ACCOUNT in self.text
        return self.name == "GenericError" and not is_final

    @property
    def is_unexplained(self) -> bool:
        """Whether the store refused without a code that says why, as it does when only the headers are asked for."""
        return self.code is None and (self._is_redirect or self.status in {301, 400, 401, 403})

    @property
    def _is_redirect(self) -> bool:
        return _REDIRECT in self.text

    @property
    def _lacks_credentials(self) -> bool:
        # The library requests credentials from the machine's environment; that request failed.
        return self.code is None and _NO_CREDENTIALS.search(self.text.partition("Debug source")[0]) is not None

    def to_error(self, action: str, path: str, bucket: str) -> NotFoundError | StorageError:
        """Return the error to raise; ``action`` is an infinitive for its message."""
        if self.is_missing:
            return NotFoundError(f"cannot {action} {path}: it does not exist")
        return StorageError(f"cannot {action} {path}: {self._reason(bucket)}", self.is_retryable)

    def _reason(self, bucket: str) -> str:
        said = " ".join(str(each) for each in (self.status, self.code) if each)
        if self.code in _NO_BUCKET:
            return f"there is no bucket '{bucket}' ({said}); create it, or check the location and the endpoint"
        if self._lacks_credentials:
            return (
                "no credentials were found: give the catalog 's3.access-key' and 's3.secret-key', set the environment "
                "variables of the cloud's tools, or give the machine a role"
            )
        if self.code in _EXPIRED:
            return f"the keys have expired ({said}); get new ones, and open the catalog again with them"
        if self._is_redirect or self.code == "AuthorizationHeaderMalformed":
            return f"the bucket '{bucket}' is in another region; give the catalog 's3.region'"
        if (
            self.status in _DENIED
            or self.code in _DENIED_CODES
            or self.name in {"PermissionDeniedError", "UnauthenticatedError"}
        ):
            return (
                f"the store denies access ({said or self.name}); check the keys or the role, and what they may do in "
                f"bucket '{bucket}'"
            )
        return f"the store answers {said}" if self.status is not None else self._reason_without_answer()

    def _reason_without_answer(self) -> str:
        if _NO_ACCOUNT in self.text:
            return (
                "the Azure account is missing: write abfss://container@account.dfs.core.windows.net/path, or give "
                "the catalog 'penstock.azure.account'"
            )
        if self.name == "ValueError":
            return f"no object has such a path ({self.text[:200]})"
        if any(sign in self.text for sign in _NETWORK):
            return "the store does not answer; check the endpoint and the network"
        return self.name


def failure_of(error: BaseException) -> Failure:
    """Parse an exception of the library."""
    text = str(error)
    status = _STATUS.search(text)
    code = _CODE.search(text)
    return Failure(
        name=type(error).__name__,
        status=int(status[1]) if status else None,
        code=code[1] if code else None,
        text=text,
    )

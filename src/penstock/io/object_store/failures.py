"""What a store refuses, as errors of the tree.

Of what the library says only the status, the store's code and the kind of failure are kept: the rest are long texts
with addresses in them, which may carry signatures.
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
_THROTTLED: Final = frozenset({408, 409, 429})
_NO_CREDENTIALS: Final = re.compile(r"credential|metadata/|169\.254\.169\.254|WebIdentity", re.IGNORECASE)
_NO_ACCOUNT: Final = "Account must be specified"
_NETWORK: Final = ("error sending request", "HttpError", "operation timed out", "TimedOut", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a store has answered, or that it has not.

    Attributes:
        name: of the library's class.
        status: of HTTP; None where no answer came.
        code: the store's word for it.
    """

    name: str
    status: int | None
    code: str | None
    text: str

    @property
    def is_missing(self) -> bool:
        """There is no such object, in a bucket that is there."""
        return self.name == "FileNotFoundError" and self.code not in _NO_BUCKET

    @property
    def is_there_already(self) -> bool:
        """A conditional put found an object."""
        return self.name in {"AlreadyExistsError", "PreconditionError"} and not self.is_conflict

    @property
    def is_conflict(self) -> bool:
        """Another conditional put was under way, and it is open which of them lands: try again."""
        return self.code in _CONFLICTS

    @property
    def is_empty_range(self) -> bool:
        """A part of an empty object was asked for."""
        return self.status == 416 or "non-partial response" in self.text

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        if self.status is not None:
            return self.status >= 500 or self.status in _THROTTLED
        return self.name == "GenericError" and not self._lacks_credentials and _NO_ACCOUNT not in self.text

    @property
    def _lacks_credentials(self) -> bool:
        # Of a request of its own, which the library sends to the machine's environment.
        return self.code is None and _NO_CREDENTIALS.search(self.text.partition("Debug source")[0]) is not None

    def to_error(self, action: str, path: str, bucket: str) -> NotFoundError | StorageError:
        """Return the error to raise; ``action`` is an infinitive."""
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
        if self.status in _DENIED or self.name in {"PermissionDeniedError", "UnauthenticatedError"}:
            return (
                f"the store denies access ({said or self.name}); check the keys or the role, and what they may do in "
                f"bucket '{bucket}'"
            )
        return f"the store answers {said}" if self.status is not None else self._reason_without_answer()

    def _reason_without_answer(self) -> str:
        if _NO_ACCOUNT in self.text:
            return (
                "nobody says which Azure account: write abfss://container@account.dfs.core.windows.net/path, or give "
                "the catalog 'penstock.azure.account'"
            )
        if self.name == "ValueError":
            return f"no object has such a path ({self.text[:200]})"
        if any(sign in self.text for sign in _NETWORK):
            return "the store does not answer; check the endpoint and the network"
        return self.name


def failure_of(error: BaseException) -> Failure:
    """Return what an error of the library says."""
    text = str(error)
    status = _STATUS.search(text)
    code = _CODE.search(text)
    return Failure(
        name=type(error).__name__,
        status=int(status[1]) if status else None,
        code=code[1] if code else None,
        text=text,
    )

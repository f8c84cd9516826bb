"""Map failures of a store to Penstock's errors.

Only the status, the store's error code and the kind of failure are kept from the library's message: the rest is long
text with URLs, which may contain signatures.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import chain
from typing import Final

from penstock.errors import NotFoundError, StorageError

_STATUS: Final = re.compile(r"status code: (\d{3})(?: ([A-Za-z ]{1,40}))?")
# Of the body of an answer; or of one object among many, which the library turns into text of its own.
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,80})</Code>|\(code: ([A-Za-z]{1,80})\)")
_KIND: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"})
_CONFLICTS: Final = frozenset({"ConditionalRequestConflict", "OperationAborted"})
_DENIED: Final = frozenset({401, 403})
_DENIED_CODES: Final = frozenset({"AccessDenied", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
# What is wrong, by the code of the store.
_REASONS: Final = {
    **dict.fromkeys(_EXPIRED, "the keys have expired ({said}); get new ones, and open the catalog again with them"),
    **dict.fromkeys(
        _NO_BUCKET, "there is no bucket '{bucket}' ({said}); create it, or check the location and the endpoint"
    ),
    "AuthorizationHeaderMalformed": "the bucket '{bucket}' is in another region; give the catalog 's3.region'",
    "RequestTimeTooSkewed": (
        "the clock of this machine differs too much from that of the store ({said}); correct it, then retry"
    ),
}
_REDIRECT: Final = "redirect without LOCATION"
_THROTTLED: Final = frozenset({408, 409, 429})
_BUSY: Final = frozenset({429, 503})
# What a store says of one object among many while it is overloaded.
_PASSING_CODES: Final = frozenset(
    {"InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown"}
)
_NOT_IMPLEMENTED: Final = 501
_HOST: Final = re.compile(r"https?://(\[[^\]]*\]|[^/\s:?]+)")
# Of services that give credentials to machines, containers and web identities.
_OF_CREDENTIALS: Final = ("169.254.", "[fd00:ec2:", "metadata.google.", "sts.", "login.microsoftonline.")
# What the library says before it has any keys, and what is wrong. It hides the URL of STS.
_BEFORE_KEYS: Final = {
    "Generic S3 error: Error performing POST REDACTED": (
        "STS, which gives keys to a web identity, does not answer; AWS_ENDPOINT_URL_STS has to begin with https://"
    ),
    "Generic S3 error: Failed to read token file": "the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read",
    "Generic S3 error: Failed to read EKS token file": (
        "the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read"
    ),
}
# Variables with other addresses of the services that give keys.
_ADDRESSES: Final = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_METADATA_ENDPOINT")
# What penstock.io.object_store.credentials says of keys that boto3 does not get.
_NO_KEYS: Final = re.compile(r"credential provider: NoKeysError: (.+)")
PANIC: Final = "PanicException"
"""Name of a panic of the library, which is no ``Exception``."""

NOT_OPENED: Final = "NotOpened"
"""Name of a failure for which no request was sent, because the settings of the store are wrong."""

CUT_OFF: Final = "CutOff"
"""Name of a failure for an answer with fewer bytes than its headers state."""

# What is wrong, by a sign in the text of the library; the same request fails again.
_SIGNS: Final = {
    "Account must be specified": (
        "the Azure account is missing: write abfss://container@account.dfs.core.windows.net/path, or give the catalog "
        "'penstock.azure.account'"
    ),
    "Invalid Access Key": "the key of the Azure account is none; check 'fs.azure.account.key.<host>'",
    "InvalidCertificate": (
        "the certificate of the store has expired, is for another host, or is signed by nobody whom this machine "
        "trusts; the environment variable SSL_CERT_FILE names a file of signers to trust"
    ),
}
# The same, by the name of the failure.
_NAMES: Final = {
    NOT_OPENED: "the store cannot be opened with these options; check the endpoint, the names and the keys",
    CUT_OFF: "its answer has fewer bytes than it states; try again, or look for a proxy that cuts answers off",
    PANIC: "no request can be made of these keys; check them, in the environment too, for line ends and blanks",
}
_NETWORK: Final = ("error sending request", "HttpError", "operation timed out", "TimedOut", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed request: the store's answer, or that none arrived.

    Attributes:
        name: class name of the library's exception, or ``NOT_OPENED``.
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
            return (self.status >= 500 and self.status != _NOT_IMPLEMENTED) or self.status in _THROTTLED
        if self.code is not None:
            return self.code in _PASSING_CODES
        is_final = any(sign in self.text for sign in (_REDIRECT, *_SIGNS)) or self._lacks_credentials
        return self.name in {"GenericError", CUT_OFF} and not is_final

    @property
    def has_expired(self) -> bool:
        """Whether the keys have expired, so that new ones may be in the environment now."""
        return self.code in _EXPIRED

    @property
    def is_of_store(self) -> bool:
        """Whether the store itself has answered: what it refuses or puts off, it may do later."""
        if self.status is None:
            return False
        return not self.is_retryable or self.code is not None or self.status in _BUSY

    @property
    def is_not_implemented(self) -> bool:
        """Whether the store cannot do what the request asks for."""
        return self.status == _NOT_IMPLEMENTED or self.code == "NotImplemented"

    @property
    def is_unexplained(self) -> bool:
        """Whether the store refused without a code that says why, as it does when only the headers are asked for."""
        return self.code is None and (self._is_redirect or self.status in {301, 400, 401, 403})

    @property
    def _is_redirect(self) -> bool:
        return _REDIRECT in self.text

    @property
    def _lacks_credentials(self) -> bool:
        # The library requests credentials from the machine's environment; that request failed. The path of a URL does
        # not count: a table may have any name.
        if self.code is not None:
            return False
        if self._before_keys is not None:
            return True
        said = self.text.partition("Debug source")[0]
        host = _HOST.search(said)
        return "credential" in said.lower() if host is None else host[1].startswith(_OF_CREDENTIALS)

    @property
    def _before_keys(self) -> str | None:
        """What is wrong with the source of the keys that the environment names; None if that is not known."""
        known = (reason for sign, reason in _BEFORE_KEYS.items() if self.text.startswith(sign))
        said = self.text.partition("Debug source")[0]
        silent = (
            f"{name} gives none" for name in _ADDRESSES if os.environ.get(name) and f" {os.environ[name]}" in said
        )
        return next(chain(known, silent), None)

    def to_error(self, action: str, path: str, bucket: str) -> NotFoundError | StorageError:
        """Return the error to raise; ``action`` is an infinitive for its message."""
        if self.is_missing:
            return NotFoundError(f"cannot {action} {path}: it does not exist")
        return StorageError(f"cannot {action} {path}: {self._reason(bucket)}", self.is_retryable)

    def _reason(self, bucket: str) -> str:
        said = " ".join(str(each) for each in (self.status, self.code) if each)
        if self.code in _REASONS:
            return _REASONS[self.code].format(said=said, bucket=bucket)
        if no_keys := _NO_KEYS.search(self.text):
            return no_keys[1]
        if self._lacks_credentials:
            why = "" if self._before_keys is None else f" ({self._before_keys})"
            return (
                f"no credentials were found{why}: give the catalog 's3.access-key' and 's3.secret-key', set the "
                "environment variables of the cloud's tools, use a profile of AWS (pip install 'penstock[aws]'), or "
                "give the machine a role"
            )
        if self._is_redirect:
            return _REASONS["AuthorizationHeaderMalformed"].format(bucket=bucket)
        if (
            self.status in _DENIED
            or self.code in _DENIED_CODES
            or self.name in {"PermissionDeniedError", "UnauthenticatedError"}
        ):
            return (
                f"the store denies access ({said or self.name}); check the keys or the role, and what they may do in "
                f"bucket '{bucket}'"
            )
        return f"the store answers {said}" if said else self._reason_without_answer()

    def _reason_without_answer(self) -> str:
        known = next((reason for sign, reason in _SIGNS.items() if sign in self.text), None) or _NAMES.get(self.name)
        if known is not None:
            return known
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
        code=code[1] or code[2] if code else None,
        text=text,
    )

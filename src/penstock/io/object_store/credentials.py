"""Where the keys of a bucket on S3 come from, and those that only boto3 (``penstock[aws]``) can fetch.

The library fetches the keys of web identities, containers and machines itself, but reads no profiles. Each process
looks at its own environment and files, so that nothing fetched is ever sent to a task.

Source:
    Order of the AWS SDKs and Tools Reference Guide, "Standardized credential providers": keys in the environment, web
    identity, shared config and credentials files, container, instance.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIBRARY: Final = "boto3"
_PROFILE: Final = "AWS_PROFILE"
_DEFAULT: Final = "default"
_FILES: Final = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
}
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SKIP_SIGNATURE")
_WEB_IDENTITY: Final = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")
_RELATIVE_URI: Final = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
_FULL_URI: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TOKEN_FILE: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - a name
# Less than the ten seconds within which a store that cannot be reached is reported.
_TIMEOUT_SECONDS: Final = 8.0
# The library asks again for keys that expire within five minutes: so it asks before each request, at most ten times a
# second. boto3 keeps the keys, and fetches new ones ten to fifteen minutes before they expire.
_KEPT: Final = timedelta(minutes=5)


class KeySource(StrEnum):
    """Where the keys of a bucket on S3 come from; the value is its name in messages."""

    OPTIONS = "the catalog's options"
    ENVIRONMENT = "the environment"
    WEB_IDENTITY = "a web identity"
    PROFILE = "a profile of AWS"
    CONTAINER = "the container's URL without a token file"
    MACHINE = "the container or the machine"


class NoKeysError(Exception):
    """A profile gives no keys; the library shows its text, which has no secrets."""


def key_source(config: Mapping[str, str | None]) -> KeySource:
    """Return where this process gets the keys of a bucket from.

    Args:
        config: settings of the library.
    """
    if config.get("access_key_id") or config.get("secret_access_key"):
        return KeySource.OPTIONS
    if any(os.environ.get(name) for name in _KEYS):
        return KeySource.ENVIRONMENT
    if all(os.environ.get(name) for name in _WEB_IDENTITY):
        return KeySource.WEB_IDENTITY
    if os.environ.get(_PROFILE) or _has_default_profile():
        return KeySource.PROFILE
    if os.environ.get(_FULL_URI) and not os.environ.get(_RELATIVE_URI) and not os.environ.get(_TOKEN_FILE):
        return KeySource.CONTAINER
    return KeySource.MACHINE


def profile_region(config: Mapping[str, str | None]) -> str | None:
    """Return the region of the profile that gives the keys; None if there is none, or if boto3 cannot read it.

    What is wrong with the profile is reported by the first request.
    """
    if key_source(config) is not KeySource.PROFILE or not _has_library():
        return None
    try:
        region: str | None = _session(_profile()).region_name
    except _boto_errors():
        return None
    return region


def credential_provider(root: str, config: Mapping[str, str | None]) -> FetchedKeys | None:
    """Return what fetches the keys of a bucket; None if the library does it itself.

    Args:
        root: location of the bucket, for the error.
        config: settings of the library.

    Raises:
        UnsupportedFeatureError: boto3 is needed and not installed.
    """
    source = key_source(config)
    if source not in {KeySource.PROFILE, KeySource.CONTAINER}:
        return None
    name = _profile() if source is KeySource.PROFILE else None
    if not _has_library():
        what, cure = (
            (f"{_FULL_URI} without {_TOKEN_FILE}", "set the latter")
            if name is None
            else (f"the profile '{name}' of {_PROFILE}", f"unset {_PROFILE}")
        )
        raise UnsupportedFeatureError(
            f"cannot open {root}: {what} needs the package boto3: pip install 'penstock[aws]', or {cure}"
        )
    return FetchedKeys(name, config.get("region"))


class FetchedKeys:
    """The keys of a profile, or of the container if it is None; called by the library, in threads of its own.

    Static keys, assumed roles, SSO and ``credential_process`` are boto3's part.
    """

    def __init__(self, profile: str | None, region: str | None) -> None:
        self._profile = profile
        self._region = region
        self._provider: Any = None

    def __call__(self) -> dict[str, Any]:
        """Return the keys, as the library takes them.

        Raises:
            NoKeysError: there are none, or they did not arrive in time.
        """
        answers: SimpleQueue[dict[str, Any] | str] = SimpleQueue()
        # A program of the profile may wait forever, and boto3 waits for minutes.
        Thread(target=lambda: answers.put(self._keys()), name="penstock-keys", daemon=True).start()
        try:
            keys = answers.get(timeout=_TIMEOUT_SECONDS)
        except Empty:
            keys = f"no answer within {_TIMEOUT_SECONDS:.0f} s"
        if not isinstance(keys, str):
            return keys
        if self._profile is None:
            raise NoKeysError(f"the URL of {_FULL_URI} gives no keys ({keys}); check it and its token")
        raise NoKeysError(
            f"the profile '{self._profile}' of AWS gives no keys ({keys}); check it by 'aws sts get-caller-identity "
            f"--profile {self._profile}', or, if it is of SSO, sign in by 'aws sso login --profile {self._profile}'"
        )

    def _keys(self) -> dict[str, Any] | str:
        """Return the keys, or the name of the error: its text may have what a program of the profile printed."""
        try:
            if self._provider is None:
                session = _session(self._profile, self._region)
                if session.get_credentials() is None:
                    return "there are none in it"
                module = importlib.import_module("obstore.auth.boto3")
                self._provider = module.Boto3CredentialProvider(session, ttl=_KEPT)
            keys: dict[str, Any] = self._provider()
        except Exception as error:  # noqa: BLE001 - what boto3 raises has no common class
            return type(error).__name__
        return keys


def _profile() -> str:
    return os.environ.get(_PROFILE) or _DEFAULT


def _has_default_profile() -> bool:
    """Whether boto3 is installed and the files have a profile for those who name none."""
    paths = (Path(os.environ.get(name) or path).expanduser() for name, path in _FILES.items())
    if not any(path.is_file() for path in paths) or not _has_library():
        return False
    try:
        return _DEFAULT in _session(None).available_profiles
    except _boto_errors():
        return True  # a file cannot be read: the first request reports it


def _has_library() -> bool:
    return importlib.util.find_spec(_LIBRARY) is not None


def _session(profile: str | None, region: str | None = None) -> Any:  # noqa: ANN401 - of a library without types
    return importlib.import_module(_LIBRARY).Session(profile_name=profile, region_name=region)


def _boto_errors() -> type[Exception]:
    errors: type[Exception] = importlib.import_module("botocore.exceptions").BotoCoreError
    return errors

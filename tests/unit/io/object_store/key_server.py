"""A server that gives keys as AWS does: to containers, to machines (IMDSv2), and to roles (STS)."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.faults.store.faulty_proxy import Faults, FaultyProxy
from tests.loopback_server import Handler, LoopbackServer

if TYPE_CHECKING:
    from email.message import Message

    from tests.certificates import Certificates

TOKEN = "TOKEN-OF-THE-CONTAINER"  # noqa: S105 - of a test
IDENTITY = "IDENTITY-OF-THE-TEST"
ROLE = "arn:aws:iam::123456789012:role/of-the-test"
SECRET = "SECRET-OF-THE-TEST"  # noqa: S105 - of a server that takes any
_SESSION = "SESSION-OF-THE-MACHINE"
_ROLES = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True, slots=True)
class Given:
    """Keys that the server gave, or that a request was signed with."""

    access_key: str
    token: str


class KeyServer(LoopbackServer):
    """The server; a context manager.

    Args:
        certificates: without, the server has no TLS.

    Attributes:
        seconds: how long the keys are good that it gives from now on.
        given: all keys that it gave; no two are the same.
    """

    def __init__(self, certificates: Certificates | None = None) -> None:
        super().__init__(_KeyHandler)
        self.seconds = 3600.0
        self.given: list[Given] = []
        self._scheme = "http"
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.chain, certificates.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"

    @property
    def address(self) -> str:
        return f"{self._scheme}://{urlsplit(self.url).netloc}"

    def give(self) -> tuple[Given, str]:
        """Return new keys and the time when they expire."""
        with self.lock:
            number = len(self.given) + 1
            self.given.append(Given(f"KEY-{number}", f"TOKEN-{number}"))
            return self.given[-1], f"{datetime.now(UTC) + timedelta(seconds=self.seconds):%Y-%m-%dT%H:%M:%SZ}"


class _KeyHandler(Handler, BaseHTTPRequestHandler):
    owner: KeyServer

    def answer(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def give(self) -> None:
        keys, until = self.owner.give()
        given = {"AccessKeyId": keys.access_key, "SecretAccessKey": SECRET, "Token": keys.token, "Expiration": until}
        self.answer(200, json.dumps({"Code": "Success", **given}))

    def do_PUT(self) -> None:
        self.body()
        self.answer(*((200, _SESSION) if self.path == "/latest/api/token" else (404, "")))

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        is_of_machine = self.headers.get("X-aws-ec2-metadata-token") == _SESSION
        if path == "/of-a-task" or (path == "/of-a-container" and self.headers.get("Authorization") == TOKEN):
            self.give()
        elif path == _ROLES and is_of_machine:
            self.answer(200, "of-the-test")
        elif path == f"{_ROLES}of-the-test" and is_of_machine:
            self.give()
        else:
            self.answer(403, "")

    def do_POST(self) -> None:
        asked = parse_qs(f"{urlsplit(self.path).query}&{self.body().decode()}")
        (action,) = asked["Action"]
        is_known = (
            asked.get("WebIdentityToken") == [IDENTITY]
            if action == "AssumeRoleWithWebIdentity"
            else "Credential=KEY-OF-A-FILE/" in self.headers.get("Authorization", "")
        )
        if not is_known or asked["RoleArn"] != [ROLE]:
            self.answer(403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
            return
        keys, until = self.owner.give()
        self.answer(
            200,
            f"<{action}Response><{action}Result><Credentials><AccessKeyId>{keys.access_key}</AccessKeyId>"
            f"<SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{keys.token}</SessionToken>"
            f"<Expiration>{until}</Expiration></Credentials><AssumedRoleUser><Arn>{ROLE}</Arn><AssumedRoleId>1"
            f"</AssumedRoleId></AssumedRoleUser></{action}Result></{action}Response>",
        )


class RecordingProxy(FaultyProxy):
    """A proxy before an S3 server; a context manager.

    Attributes:
        signed: the keys of all requests, in order, and the regions.
        expired: the access key whose requests are refused, because it has expired.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, Faults(busy=0, lost=0, delay_seconds=0))
        self.signed: list[tuple[Given, str]] = []
        self.expired = ""

    def refusal(self, _command: str, _path: str, headers: Message) -> bytes | None:
        scope = headers.get("Authorization", "").partition("Credential=")[2].split("/")
        with self.lock:
            self.signed.append((Given(scope[0], headers.get("X-Amz-Security-Token", "")), scope[2]))
        return b"<Error><Code>ExpiredToken</Code></Error>" if scope[0] == self.expired else None

    @property
    def keys(self) -> set[Given]:
        return {given for given, _ in self.signed}

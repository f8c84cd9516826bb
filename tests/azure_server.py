"""An Azure Blob server on loopback: Azurite, which ``make test-cloud`` fetches."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import subprocess
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlencode

from tests.s3_server import free_port

if TYPE_CHECKING:
    from types import TracebackType

    from tests.certificates import Certificates

PROGRAM: Final = Path(__file__).parents[1] / ".cloud" / "node_modules" / ".bin" / "azurite-blob"
ACCOUNT: Final = "devstoreaccount1"
HOST: Final = f"{ACCOUNT}.dfs.core.windows.net"
# Public: Azurite's own, the same on every machine.
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER: Final = "lake"
START_SECONDS: Final = 60.0
VERSION: Final = "2021-08-06"


class AzureServer:
    """A server with one container, killed at the end; a context manager.

    Args:
        certificates: for TLS, without which the server speaks HTTP.
    """

    def __init__(self, certificates: Certificates | None = None) -> None:
        self.port = free_port()
        self._authority = certificates and certificates.authority
        tls = ("--cert", str(certificates.chain), "--key", str(certificates.key)) if certificates else ()
        self._process = subprocess.Popen(
            [
                *(str(PROGRAM), "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"),
                *("--blobHost", "127.0.0.1", "--blobPort", str(self.port), *tls),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def options(self) -> dict[str, str]:
        """Of a catalog whose warehouse lies in the container."""
        return {
            "penstock.azure.endpoint": f"{self._url}/{ACCOUNT}",
            "penstock.azure.account": ACCOUNT,
            f"fs.azure.account.key.{HOST}": KEY,
        }

    @property
    def options_with_token(self) -> dict[str, str]:
        """Of the same catalog, with a shared access signature instead of the key."""
        options = {key: value for key, value in self.options.items() if key.startswith("penstock.")}
        return {**options, f"fs.azure.sas.fixed.token.{HOST}": self.sas_token()}

    @property
    def hadoop_settings(self) -> dict[str, str]:
        """Of Hadoop's connector, without a key."""
        settings = {
            "fs.azure.abfs.endpoint": f"127.0.0.1:{self.port}",
            # The server has the Blob API only, and no hierarchical namespace.
            "fs.azure.fns.account.service.type": "BLOB",
            "fs.azure.account.hns.enabled": "false",
        }
        if self._authority is not None:
            return settings
        # Without TLS, the connector cannot use its other library.
        library = {"fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION"}
        return {**settings, **library, "fs.azure.always.use.https": "false"}

    @property
    def _url(self) -> str:
        return f"http{'' if self._authority is None else 's'}://127.0.0.1:{self.port}"

    def sas_token(self) -> str:
        """Return a shared access signature for the whole account, valid for a day."""
        end = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        # Permissions, services, kinds of resources, start, end, addresses, protocols, version.
        fields = {
            "sp": "rwdlac",
            "ss": "b",
            "srt": "sco",
            "st": "",
            "se": end,
            "sip": "",
            "spr": "",
            "sv": "2020-08-04",
        }
        signed = "".join(f"{value}\n" for value in (ACCOUNT, *fields.values()))
        return urlencode({**{key: value for key, value in fields.items() if value}, "sig": _signature(signed)})

    def __enter__(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self._process.poll() is None, "Azurite did not start"
                time.sleep(0.1)
            else:
                self._make_container()
                return self
        raise TimeoutError("Azurite did not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _make_container(self) -> None:
        """Make the container, with a request that is signed as the interface wants it."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
        signed += f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self._url}/{ACCOUNT}/{CONTAINER}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{_signature(signed)}",
                "Content-Length": "0",
            },
        )
        trust = None if self._authority is None else ssl.create_default_context(cafile=str(self._authority))
        urllib.request.urlopen(request, timeout=30, context=trust).close()  # noqa: S310 - loopback


def _signature(text: str) -> str:
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()

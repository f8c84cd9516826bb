"""Servers on loopback that ``make test-cloud`` fetches: S3 by versitygw and s3proxy, and an HDFS of one data node."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Bucket, free_port

if TYPE_CHECKING:
    from types import TracebackType

FETCHED: Final = Path(__file__).parents[1] / ".cloud"
START_SECONDS: Final = 120.0
HADOOP_AWS: Final = FETCHED / "hadoop-aws"
"""JARs of Hadoop's connector for S3, for Spark."""
HADOOP_AZURE: Final = FETCHED / "hadoop-azure"
"""Likewise, for Azure."""
BUCKET: Final = "lake"


class _Server(ABC):
    """A process that is killed at the end, with a directory that is deleted then; a context manager."""

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-server-"))
        (self.folder / BUCKET).mkdir()
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
            )

    @abstractmethod
    def command(self) -> list[str]:
        """Return the program and its arguments."""

    def is_ready(self) -> bool:
        return True

    def __enter__(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                if self.is_ready():
                    return self
            except OSError:
                assert self._process.poll() is None, self.log()
            time.sleep(0.1)
        self.__exit__(None, None, None)
        raise TimeoutError(self.log())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    @property
    def bucket(self) -> S3Bucket:
        """The bucket of a server that speaks S3."""
        return S3Bucket(f"http://127.0.0.1:{self.port}", BUCKET)


class VersityServer(_Server):
    """versitygw, which keeps objects as files."""

    PROGRAM: Final = FETCHED / "versitygw" / "versitygw"

    def command(self) -> list[str]:
        return [str(self.PROGRAM), "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", str(self.folder)]


class ProxyServer(_Server):
    """s3proxy, which ignores the condition of a put."""

    JARS: Final = FETCHED / "s3proxy"

    def command(self) -> list[str]:
        (self.folder / "settings").write_text(
            f"s3proxy.authorization=none\ns3proxy.endpoint=http://127.0.0.1:{self.port}\n"
            "s3proxy.ignore-unknown-headers=true\n"
            f"jclouds.provider=filesystem\njclouds.filesystem.basedir={self.folder}\n"
        )
        return ["java", "-cp", f"{self.JARS}/*", "org.gaul.s3proxy.Main", "--properties", f"{self.folder}/settings"]


class HdfsServer(_Server):
    """A name node and a data node."""

    JARS: Final = FETCHED / "hdfs"

    @property
    def root(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [
            *("java", "-Xmx512m", f"-Dtest.build.data={self.folder}", f"-Dhadoop.log.dir={self.folder}"),
            *("-cp", f"{self.JARS}/*", "org.apache.hadoop.test.MiniDFSClusterManager"),
            *("-datanodes", "1", "-format", "-nnport", str(self.port), "-writeDetails", f"{self.folder}/ready"),
        ]

    def is_ready(self) -> bool:
        """Whether the data node has registered, too."""
        return (self.folder / "ready").exists()

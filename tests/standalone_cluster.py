"""A Spark standalone cluster of two workers that share nothing: own network, own directories, own processes."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyspark
from tests.quick_spark import JVM_OPTIONS, quick_environment
from tests.s3_server import free_port

if TYPE_CHECKING:
    from types import TracebackType

SPARK_HOME: Final = Path(pyspark.__file__).parent
START_SECONDS: Final = 90.0
SPARK_CLASS: Final = SPARK_HOME / "bin" / "spark-class"


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Network:
    """A bridge on this machine, and a network namespace with an address of its own for each worker."""

    def __init__(self) -> None:
        self.name = f"pk{random.randrange(16**6):06x}"  # noqa: S311 - a name that nobody else has
        # 198.18.0.0/15 is for tests of networks (RFC 2544).
        self.prefix = f"198.{random.choice((18, 19))}.{random.randrange(256)}"  # noqa: S311 - see above
        self.host = f"{self.prefix}.1"
        self._spaces: list[str] = []
        run("ip", "link", "add", self.name, "type", "bridge")
        run("ip", "addr", "add", f"{self.host}/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")

    @staticmethod
    def is_allowed() -> bool:
        """Whether this machine lets us make namespaces."""
        name = f"pk{os.getpid()}"
        try:
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "unshare", "-mu", "true")
            run("ip", "netns", "del", name)
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    def add(self) -> tuple[str, str]:
        """Make the namespace of a worker; return its name and its address."""
        number = len(self._spaces) + 2
        space, outer, inner = f"{self.name}-{number}", f"{self.name}o{number}", f"{self.name}i{number}"
        self._spaces.append(space)
        run("ip", "netns", "add", space)
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
        run("ip", "link", "set", outer, "master", self.name, "up")
        run("ip", "-n", space, "addr", "add", f"{self.prefix}.{number}/24", "dev", inner)
        run("ip", "-n", space, "link", "set", inner, "up")
        run("ip", "-n", space, "link", "set", "lo", "up")
        return space, f"{self.prefix}.{number}"

    def cut(self, space: str) -> None:
        """Lose all packets from and to a machine, without a word to either side."""
        run("ip", "link", "set", self._outer(space), "down")

    def mend(self, space: str) -> None:
        """Let packets through again."""
        run("ip", "link", "set", self._outer(space), "up")

    def _outer(self, space: str) -> str:
        return f"{self.name}o{space.rpartition('-')[2]}"

    def close(self) -> None:
        for space in self._spaces:
            kill_all(pids_in(space))
            run("ip", "netns", "del", space)
        run("ip", "link", "del", self.name)


def pids_in(space: str) -> list[int]:
    return [int(pid) for pid in run("ip", "netns", "pids", space).split()]


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> str:
    """Return the command of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def seconds_of(pids: list[int]) -> float:
    """Return the CPU seconds of processes, and of those of their children that have ended."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


class Worker:
    """One machine of the cluster.

    Attributes:
        space: name of its network namespace.
    """

    def __init__(self, folder: Path, space: str, address: str, private: Path) -> None:
        self.folder, self.space, self.address, self.private = folder, space, address, private
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self, master: str, environment: dict[str, str]) -> None:
        """Start it; ``private`` is an empty disk of its own there."""
        self.folder.mkdir(exist_ok=True)
        self.starts += 1
        environment = {
            **environment,
            "SPARK_LOCAL_IP": self.address,
            "SPARK_WORKER_DIR": str(self.folder / "work"),
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
        }
        command = [
            *(str(SPARK_CLASS), "org.apache.spark.deploy.worker.Worker", "--host", self.address, "--port", "0"),
            *("--webui-port", "0", "--cores", "1", "--memory", "1g", master),
        ]
        mount = f'mount -t tmpfs tmpfs {self.private} && hostname {self.folder.name} && cd {self.folder} && exec "$@"'
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.space, "unshare", "-mu", "sh", "-c", mount, "sh", *command],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def lose(self) -> None:
        """Kill all that runs there."""
        assert self.process is not None
        kill_all(pids_in(self.space))
        self.process.wait()

    def executors(self) -> list[str]:
        """Return the directories of the executors so far, also of those that have ended."""
        return sorted(str(path) for path in self.folder.glob("work/app-*/*") if path.is_dir())

    def pids_of(self, name: str) -> list[int]:
        """Return the processes whose command has a name in it."""
        return [pid for pid in pids_in(self.space) if name in command_of(pid)]


class StandaloneCluster:
    """Master and workers, killed at the end; a context manager.

    Attributes:
        private: a directory that is another, empty disk on each worker.
        host: address of this machine for the workers.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder, self.private = folder, folder / "private"
        self.private.mkdir(parents=True)
        self.network = Network()
        self.host = self.network.host
        self.master = f"spark://{self.host}:{free_port()}"
        self.environment = {
            **os.environ,
            **quick_environment(),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join(JVM_OPTIONS),
            "SPARK_NO_DAEMONIZE": "1",
        }
        self.workers = [
            Worker(folder / f"machine-{number}", *self.network.add(), self.private) for number in range(workers)
        ]
        self._master: subprocess.Popen[bytes] | None = None
        self._drivers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        port = self.master.rpartition(":")[2]
        with (self.folder / "master-log").open("ab") as log:
            self._master = subprocess.Popen(
                [
                    *(str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", "--host", self.host, "--port", port),
                    *("--webui-port", "0"),
                ],
                env={**self.environment, "SPARK_LOCAL_IP": self.host},
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        # A worker that finds no master yet tries again.
        for worker in self.workers:
            worker.start(self.master, self.environment)
        self.wait_for_workers()

    def wait_for_workers(self) -> None:
        """Wait until workers have registered as often as they were started."""
        deadline = time.monotonic() + START_SECONDS
        while self._log().count("Registering worker") < sum(worker.starts for worker in self.workers):
            assert time.monotonic() < deadline, self._log()[-2000:]
            time.sleep(0.1)

    def _log(self) -> str:
        return (self.folder / "master-log").read_text(errors="replace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in self._drivers:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.communicate()
        self.network.close()
        if self._master is not None:
            self._master.kill()
            self._master.wait()
        for worker in self.workers:
            if worker.process is not None:
                worker.process.wait()

    def start_driver(
        self,
        script: Path,
        *arguments: str,
        python: str = sys.executable,
        folder: str = "driver",
        space: tuple[str, str] | None = None,
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Start a program with a session of the cluster, in a directory of its own.

        Args:
            python: path of the Python that runs the tasks.
            space: network namespace and address of a machine of its own, which has its own process ids too; None for
                this machine.
        """
        directory = self.folder / folder
        directory.mkdir(exist_ok=True)
        command, address = [sys.executable, str(script), *arguments], self.host
        if space is not None:
            named = f'hostname {folder} && exec "$@"'
            apart = ["ip", "netns", "exec", space[0], "unshare", "-mpu", "--fork", "--mount-proc"]
            command, address = [*apart, "sh", "-c", named, "sh", *command], space[1]
        environment: dict[str, Any] = {
            **self.environment,
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(directory / "scratch"),
            "PYSPARK_PYTHON": python,
            "PENSTOCK_MASTER": self.master,
            **variables,
        }
        environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        with (directory / "errors").open("ab") as errors:
            driver = subprocess.Popen(
                command,
                env=environment,
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._drivers.append(driver)
        return driver

    def errors_of(self, folder: str = "driver") -> str:
        """Return the end of what drivers in a directory wrote to stderr."""
        text = (self.folder / folder / "errors").read_text(errors="replace")
        return re.sub(r"\n\tat .*", "", text)[-4000:]

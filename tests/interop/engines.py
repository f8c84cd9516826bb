"""The reference engines as workers: one process each, started once, asked over a pipe.

Tables are named by their location, ``<warehouse>/<database>.db/<table>``. Everything that is installed for them lives
in .interop/ at the project's root.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.interop.canonical import sort_rows

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
INSTALLED: Final = ROOT / ".interop"

Row = dict[str, Any]


class UnavailableError(Exception):
    """An engine cannot be had on this machine; the message is one line."""


class EngineError(Exception):
    """An engine refused a request; the message is its own."""


def run_step(command: Sequence[str | Path], purpose: str) -> str:
    """Run a step of an installation and return its standard output.

    Raises:
        UnavailableError: it failed; with the last line that it printed.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        message = f"{purpose}: {error}"
        raise UnavailableError(message) from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        message = f"{purpose}: {last[0]}"
        raise UnavailableError(message)
    return done.stdout


def digest(*parts: bytes) -> str:
    """Name an installation by what it is made from, so that a change makes another one."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


class Engine:
    """A server process that answers one JSON request a line."""

    name: str

    def __init__(self, command: Sequence[str | Path]) -> None:
        """Start the process."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process by closing its input."""
        with self._process as process, self._stderr:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()

    def ask(self, op: str, location: Path | str, **request: Any) -> Any:
        """Send one request about the table at ``location``; arguments that are None are left out.

        Raises:
            EngineError: the engine refused it.
        """
        warehouse, database, table = str(location).rsplit("/", 2)
        request = {name: value for name, value in request.items() if value is not None}
        request |= {"op": op, "warehouse": warehouse, "table": f"{database.removesuffix('.db')}.{table}"}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            text = self._stderr.read().decode(errors="replace")[-2000:]
            message = f"{self.name} died over {op} of {location}:\n{text}"
            raise EngineError(message)
        answer = json.loads(line)
        if "error" in answer:
            message = f"{self.name}: {answer['error']}\n{answer['trace']}"
            raise EngineError(message)
        return answer["ok"]

    def read(self, location: Path | str, **how: Any) -> list[Row]:
        """Return the canonical rows in canonical order; ``how`` as in :meth:`scan`."""
        rows, _ = self.scan(location, **how)
        return rows

    def scan(
        self,
        location: Path | str,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        filter: Sequence[Sequence[Any]] | None = None,
        meta: bool = False,
    ) -> tuple[list[Row], int]:
        """Return the canonical rows and how many files were read for them.

        Args:
            location: of the table.
            snapshot: id to read; the latest when neither it nor ``tag`` is given.
            tag: name to read.
            columns: names to project.
            filter: conditions ``[column, "=" | "<" | ">", value]`` or ``[column, "is null"]``, all of which hold.
            meta: add ``_bucket`` and ``_partition`` to each row (Java only).
        """
        options = {}
        if snapshot is not None:
            options["scan.snapshot-id"] = str(snapshot)
        if tag is not None:
            options["scan.tag-name"] = tag
        answer = self.ask("read", location, options=options or None, columns=columns, filter=filter, meta=meta or None)
        return sort_rows(answer["rows"]), answer["files"]

    def create(
        self,
        location: Path | str,
        fields: Sequence[tuple[str, Any]],
        *,
        partition: Sequence[str] = (),
        options: dict[str, str] | None = None,
    ) -> None:
        """Create a table; a field is its name and its type as a schema file has it."""
        self.ask("create", location, fields=fields, partition=partition, table_options=options or {})

    def append(self, location: Path | str, rows: Sequence[Row]) -> None:
        """Append canonical rows in one commit."""
        self.ask("write", location, rows=rows)

    def overwrite(self, location: Path | str, rows: Sequence[Row], partition: dict[str, str] | None = None) -> None:
        """Replace a partition, or everything, in one commit."""
        self.ask("write", location, rows=rows, overwrite=partition or {})


class JavaPaimon(Engine):
    """Paimon's Java API 1.4.2."""

    name = "Java Paimon"

    def __init__(self) -> None:
        """Fetch, compile and start.

        Raises:
            UnavailableError: no Java with a compiler, or no JARs.
        """
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else "java"
        run_step([ROOT / "scripts" / "check_java.sh"], "Java Paimon cannot run")
        jars = run_step([sys.executable, ROOT / "scripts" / "fetch_jars.py"], "Java Paimon's JARs").split()
        super().__init__(
            [
                *(java, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"),
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                *("-cp", ":".join([str(compile_java(java, jars)), *jars]), "Engine"),
            ]
        )

    def schema(self, location: Path | str) -> dict[str, Any]:
        """Return what Java takes the latest schema to be."""
        return self.ask("schema", location)

    def follow(self, location: Path | str, user: str, options: dict[str, str] | None = None) -> dict[str, Any]:
        """Return what a stream read of that user delivers until there is nothing more for now.

        Args:
            location: of the table.
            user: a new one begins as the options say, a known one goes on.
            options: of the read.

        Returns:
            ``plans``, each with its ``watermark`` and its ``splits`` of ``snapshot``, ``partition``, ``bucket`` and
            ``rows``; the ``next`` snapshot id; whether the stream has ``ended``.
        """
        return self.ask("follow", location, user=user, options=options)

    def count_rows_elsewhere(self, location: Path | str) -> int:
        """Return how many rows lie in another bucket than Java would put them into."""
        return self.ask("buckets", location)["elsewhere"]


class PyPaimon(Engine):
    """pypaimon 2.1.0."""

    name = "pypaimon"

    def __init__(self) -> None:
        """Install and start.

        Raises:
            UnavailableError: its environment could not be made.
        """
        super().__init__([install_pypaimon() / "bin" / "python", "-W", "ignore", HERE / "pypaimon_server.py"])


def compile_java(java: str, jars: Sequence[str]) -> Path:
    """Return the folder of the harness's classes, compiling when a source or JAR has changed.

    A JRE has no ``javac`` on the PATH but usually the compiler's module.
    """
    sources = sorted((HERE / "java").glob("*.java"))
    names = [Path(jar).name.encode() for jar in jars]
    target = INSTALLED / "classes" / digest(*(source.read_bytes() for source in sources), *names)
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=target.parent)
        compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "--release", "17"]
        run_step([*compiler, "-d", fresh, "-cp", ":".join(jars), *sources], "Java Paimon's harness does not compile")
        put_in_place(Path(fresh), target)
    return target


def install_pypaimon() -> Path:
    """Return pypaimon's environment, making it when its requirements have changed."""
    return install_environment("pypaimon", HERE / "pypaimon-requirements.txt", INSTALLED)


def install_environment(name: str, requirements: Path, folder: Path, *options: str, build: Path | None = None) -> Path:
    """Return an environment below ``folder``, making it when its requirements have changed.

    Args:
        name: for its folder and for messages.
        requirements: what it has.
        folder: of environments.
        options: of ``uv pip install``.
        build: what its packages are built with, where they come as source.
    """
    parts = [requirements.read_bytes(), sys.version.encode(), *([build.read_bytes()] if build else [])]
    target = folder / f"{name.replace(' ', '-').lower()}-{digest(*parts)}"
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder))
        uv = ROOT / "scripts" / "uv.sh"
        run_step([uv, "venv", "-q", "--clear", "--no-project", fresh], f"{name}'s environment")
        install = [uv, "pip", "install", "-q", "-p", fresh / "bin" / "python", "-r", requirements, *options]
        run_step([*install, *(("-b", build) if build else ())], f"{name}'s packages")
        put_in_place(fresh, target)
    return target


def put_in_place(fresh: Path, target: Path) -> None:
    """Move a finished installation to its name, unless another process was first."""
    try:
        fresh.rename(target)
    except OSError:
        shutil.rmtree(fresh)
        if not target.is_dir():
            raise

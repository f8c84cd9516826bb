"""Fetch the JARs of the Java reference engines, check each against its pinned SHA-256, and print their paths.

A JAR comes from .interop/jars, else from the local Maven repository, else by HTTPS from Maven Central, else through
``mvn`` (which may have a mirror configured). ``--probe`` fetches nothing; its exit code says whether the reference
engines and Kafka can run on this machine: Java 17 with its compiler module, and the JARs present or Maven Central
reachable.
"""

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PINS: Final = ROOT / "tests" / "interop" / "jars.toml"
KAFKA_PINS: Final = ROOT / "scripts" / "kafka_jars.toml"
CACHE: Final = ROOT / ".interop" / "jars"
MAVEN_REPOSITORY: Final = Path.home() / ".m2" / "repository"
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2"
ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One pinned JAR; ``artifact`` is ``group:name:version``, or with ``:jar:classifier`` after it."""

    artifact: str
    sha256: str

    @property
    def repository_path(self) -> str:
        """Path inside every Maven repository."""
        group, name, version, *_ = self.artifact.split(":")
        return f"{group.replace('.', '/')}/{name}/{version}/{self.file_name}"

    @property
    def file_name(self) -> str:
        """Name of the file."""
        _, name, *rest = self.artifact.split(":")
        return "-".join([name, rest[0], *rest[2:]]) + ".jar"

    def is_at(self, path: Path) -> bool:
        """Whether ``path`` holds exactly this JAR."""
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


def load_pins(path: Path = PINS, **having: str) -> tuple[Jar, ...]:
    """Read a pins file: the entries that have all of these values."""
    entries = tomllib.loads(path.read_text())["jar"]
    picked = [entry for entry in entries if having.items() <= entry.items()]
    return tuple(Jar(artifact=entry["artifact"], sha256=entry["sha256"]) for entry in picked)


def find(jar: Jar) -> Path | None:
    """Return the path of the JAR if it is already on this machine."""
    places = (CACHE / jar.file_name, MAVEN_REPOSITORY / jar.repository_path)
    return next((place for place in places if jar.is_at(place)), None)


def keep(jar: Jar, fetched: Path) -> Path:
    """Check a fetched file and move it into the cache atomically, so that concurrent runs see all of it or nothing.

    Raises:
        OSError: the checksum differs from the pinned one.
    """
    if not jar.is_at(fetched):
        message = f"{jar.artifact} has an unexpected checksum"
        raise OSError(message)
    return fetched.replace(CACHE / jar.file_name)


def download(jar: Jar) -> Path:
    """Fetch by HTTPS, with retries after one, two and four seconds.

    Raises:
        OSError: the last attempt failed.
    """
    url = f"{MAVEN_CENTRAL}/{jar.repository_path}"
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(2.0 ** (attempt - 1))
        try:
            with (
                tempfile.TemporaryDirectory(dir=CACHE) as folder,
                urllib.request.urlopen(url, timeout=60) as answer,  # noqa: S310 - an https constant
            ):
                part = Path(folder) / jar.file_name
                with part.open("wb") as file:
                    shutil.copyfileobj(answer, file)
                return keep(jar, part)
        except (OSError, http.client.HTTPException) as error:
            failure = error
    message = f"{jar.artifact} could not be fetched from Maven Central ({failure})"
    raise OSError(message) from failure


def copy_with_maven(jar: Jar) -> Path:
    """Fetch through the ``mvn`` on the PATH.

    Raises:
        OSError: there is no ``mvn``, or it failed.
    """
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar.artifact}", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            message = f"mvn ended with {done.returncode}"
            raise OSError(message)
        return keep(jar, Path(folder) / jar.file_name)


def fetch(jar: Jar) -> Path:
    """Return the JAR's path; fetch it if it is not on this machine.

    Raises:
        OSError: all sources failed.
    """
    if found := find(jar):
        return found
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {jar.file_name} from Maven Central", file=sys.stderr)
    try:
        return download(jar)
    except OSError as refused:
        try:
            return copy_with_maven(jar)
        except OSError as error:
            message = f"{refused}, nor by Maven ({error})"
            raise OSError(message) from error


def can_compile_java() -> bool:
    """Whether the Java that Spark would use is 17 or newer and has the compiler module."""
    if subprocess.run([ROOT / "scripts" / "check_java.sh"], capture_output=True, check=False).returncode:
        return False
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-version"]
    return subprocess.run(compiler, capture_output=True, check=False).returncode == 0


def is_reachable(jar: Jar) -> bool:
    """Whether Maven Central answers for ``jar``."""
    question = urllib.request.Request(f"{MAVEN_CENTRAL}/{jar.repository_path}", method="HEAD")  # noqa: S310 - https
    try:
        with urllib.request.urlopen(question, timeout=15):  # noqa: S310 - an https constant
            return True
    except (OSError, http.client.HTTPException):
        return False


def can_ask_engines() -> bool:
    """Whether the reference engines and Kafka can run here, for ``--probe``."""
    return can_compile_java() and all(find(jar) or is_reachable(jar) for jar in (*load_pins(), *load_pins(KAFKA_PINS)))


def main(arguments: list[str]) -> int:
    """Print one path per line, or probe; on failure return 1, with a one-line reason on stderr."""
    if arguments == ["--probe"]:
        return 0 if can_ask_engines() else 1
    try:
        for jar in load_pins():
            print(fetch(jar))
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A real Kafka broker for tests and demos: one KRaft node on free ports of this machine, with temporary data.

``run`` runs it until standard input ends, so no longer than the process at the other end of the pipe, however that
ends; it prints ``{"servers": "127.0.0.1:40123"}`` once the broker responds. ``start`` starts one in the background,
``stop`` ends it, ``status`` reports whether one is running. ``jars`` prints the JARs that Spark needs to read from
Kafka, as a value of ``spark.jars``.
"""

import argparse
import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn

from scripts.fetch_jars import KAFKA_PINS, ROOT, fetch, load_pins

STATE: Final = ROOT / ".interop" / "kafka.json"
START_SECONDS: Final = 90.0
STOP_SECONDS: Final = 20.0
ATTEMPTS: Final = 3
# Small and quick to start; its log goes to a file, and must include the message that it is ready.
JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
READY: Final = "Kafka Server started"
SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
log.dirs={folder}/data
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class BrokerError(Exception):
    """The broker is not available; the message is one line."""


def fetch_all(use: str) -> tuple[Path, ...]:
    """Return the paths of the JARs for ``broker`` or ``connector``; fetch those that are missing.

    Raises:
        BrokerError: one of them is not available.
    """
    try:
        return tuple(fetch(jar) for jar in load_pins(KAFKA_PINS, use=use))
    except OSError as error:
        raise BrokerError(str(error)) from error


def find_ports(count: int) -> tuple[int, ...]:
    """Return ports that are free now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def java_command(jars: tuple[Path, ...], *arguments: str) -> list[str]:
    """Return the command for one of Kafka's programs."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    # Standard input reports the death of our parent process; this reports ours, if the system supports it.
    killed_with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [*killed_with_us, java, *JAVA_OPTIONS, "-cp", os.pathsep.join(map(str, jars)), *arguments]


def last_words(log: Path) -> str:
    """Return the most informative line of a log about a failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if "Exception" in line or "ERROR" in line]
    return next(iter(causes or lines[-1:]), "no output")


def launch(folder: Path, jars: tuple[Path, ...]) -> tuple[subprocess.Popen[bytes], str]:
    """Start a broker and wait until it responds; returns the process and its address.

    Raises:
        BrokerError: it ended, or did not respond in time.
    """
    port, controller_port = find_ports(2)
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller_port=controller_port, folder=folder))
    log = folder / "log"
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with log.open("wb") as output:
        format_it = java_command(jars, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(settings))
        if subprocess.run(format_it, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode:
            message = f"Kafka's storage could not be formatted: {last_words(log)}"
            raise BrokerError(message)
        start_it = java_command(jars, "kafka.Kafka", str(settings))
        process = subprocess.Popen(start_it, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until_ready(process, log)
    except BaseException:
        end(process)
        raise
    return process, f"127.0.0.1:{port}"


def wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the broker responds.

    Raises:
        BrokerError: it ended, or it takes too long.
    """
    deadline = time.monotonic() + START_SECONDS
    while READY not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            message = f"the Kafka broker did not start: {last_words(log)}"
            raise BrokerError(message)
        time.sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a broker at once; its data is discarded."""
    process.kill()
    process.wait()


@contextlib.contextmanager
def running_broker() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a broker; yields its process and address.

    Raises:
        BrokerError: it is not available.
    """
    jars = fetch_all("broker")
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="kafka-") as name:
            try:
                process, servers = launch(Path(name), jars)
            except (BrokerError, OSError) as error:
                # Another process may have taken a port after our check.
                if attempt == ATTEMPTS - 1:
                    raise BrokerError(str(error)) from error
                continue
            try:
                yield process, servers
            finally:
                end(process)
            return


def is_input_open() -> bool:
    """Wait a moment; return whether standard input is still open at the other end."""
    readable, _, _ = select.select([sys.stdin], [], [], 0.1)
    return not readable or bool(os.read(sys.stdin.fileno(), 1024))


def is_forever() -> bool:
    """Wait a moment."""
    time.sleep(0.1)
    return True


def exit_quietly(*_: object) -> NoReturn:
    """Exit normally on a signal, so that resources are cleaned up."""
    sys.exit(0)


def keep_running(goes_on: Callable[[], bool], tell: Callable[[str], None]) -> int:
    """Run a broker while ``goes_on`` returns true; return 1 if it dies on its own.

    Args:
        tell: called once with the address.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, exit_quietly)
    with running_broker() as (process, servers):
        tell(servers)
        while goes_on():
            if process.poll() is not None:
                print("the Kafka broker has died", file=sys.stderr)
                return 1
    return 0


def say(servers: str) -> None:
    """Print the address in machine-readable form."""
    print(json.dumps({"servers": servers}), flush=True)


def run() -> int:
    """Run a broker until standard input ends."""
    return keep_running(is_input_open, say)


def serve() -> int:
    """Run a broker until a signal, and hold the lock that shows others that it is running."""
    STATE.parent.mkdir(parents=True, exist_ok=True)
    with STATE.open("a+") as state:
        fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)

        def tell(servers: str) -> None:
            state.truncate(0)
            state.write(json.dumps({"servers": servers, "pid": os.getpid()}))
            state.flush()
            say(servers)

        try:
            return keep_running(is_forever, tell)
        finally:
            state.truncate(0)


def find_running() -> dict[str, str | int] | None:
    """Return the address and process id of the broker that ``start`` started; None if none is running."""
    if not STATE.exists():
        return None
    with STATE.open() as state:
        try:
            fcntl.flock(state, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = state.read()
            return dict(json.loads(text)) if text else None
    return None


def start() -> int:
    """Start a broker in the background, unless one is running, and print its address."""
    if found := find_running():
        print(found["servers"])
        return 0
    command = [sys.executable, "-m", "tests.support.kafka_broker", "serve"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        return process.wait() or 1
    print(json.loads(line)["servers"])
    return 0


def stop() -> int:
    """End the broker that ``start`` started."""
    found = find_running()
    if found is None:
        print("no broker is running")
        return 0
    os.kill(int(found["pid"]), signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while find_running() is not None:
        if time.monotonic() > deadline:
            message = f"the broker does not end: process {found['pid']}"
            raise BrokerError(message)
        time.sleep(0.05)
    print("stopped")
    return 0


def status() -> int:
    """Print the address of the running broker; return 1 if there is none."""
    found = find_running()
    print(found["servers"] if found else "no broker is running")
    return 0 if found else 1


def jars() -> int:
    """Print the JARs for ``spark.jars``."""
    print(",".join(map(str, fetch_all("connector"))))
    return 0


COMMANDS: Final = {
    "run": (run, "keep a broker until standard input ends"),
    "start": (start, "start one in the background and print its address"),
    "stop": (stop, "end it"),
    "status": (status, "print its address; exit code 1 when none runs"),
    "jars": (jars, "print the JARs that Spark needs, for spark.jars"),
    "serve": (serve, argparse.SUPPRESS),
}


def main(arguments: list[str]) -> int:
    """Run a command; on failure return 1, with a one-line reason on stderr."""
    parser = argparse.ArgumentParser(
        prog="scripts/kafka", description="A Kafka broker on this machine, for tests and demos."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (_, meaning) in COMMANDS.items():
        if meaning != argparse.SUPPRESS:
            commands.add_parser(name, help=meaning)
        else:
            commands.add_parser(name)
    try:
        return COMMANDS[parser.parse_args(arguments).command][0]()
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

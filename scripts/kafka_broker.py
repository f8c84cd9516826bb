"""A real Kafka broker for tests and demos: one KRaft node on free ports of this machine, its data in a temporary place.

``run`` keeps it until standard input ends, and so no longer than the process that holds the other end of the pipe,
however that one dies; it prints ``{"servers": "127.0.0.1:40123"}`` once the broker answers. ``start`` leaves one
running in the background, ``stop`` ends it, ``status`` says whether there is one. ``jars`` prints what Spark needs to
read from Kafka, as ``spark.jars`` takes it.
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
# Small and quick to start; its own words go to a file, and what it says when it is ready must be among them.
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
    """The broker cannot be had; the message is one line."""


def fetch_all(use: str) -> tuple[Path, ...]:
    """Return the paths of the JARs for ``broker`` or ``connector``, fetched where they are not on this machine.

    Raises:
        BrokerError: one of them cannot be had.
    """
    try:
        return tuple(fetch(jar) for jar in load_pins(KAFKA_PINS, use=use))
    except OSError as error:
        raise BrokerError(str(error)) from error


def find_ports(count: int) -> tuple[int, ...]:
    """Return ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def java_command(jars: tuple[Path, ...], *arguments: str) -> list[str]:
    """Return the command for one of Kafka's programs."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    # Standard input tells of the death of our owner; this one of our own, where the system can.
    killed_with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [*killed_with_us, java, *JAVA_OPTIONS, "-cp", os.pathsep.join(map(str, jars)), *arguments]


def last_words(log: Path) -> str:
    """Return the line of a log that says most about a failure."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if "Exception" in line or "ERROR" in line]
    return next(iter(causes or lines[-1:]), "no output")


def launch(folder: Path, jars: tuple[Path, ...]) -> tuple[subprocess.Popen[bytes], str]:
    """Start a broker and wait until it answers; returns the process and its address.

    Raises:
        BrokerError: it ended, or did not answer in time.
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
    """Return when the broker answers.

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
    """End a broker at once: its data go away with it."""
    process.kill()
    process.wait()


@contextlib.contextmanager
def running_broker() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a broker; its process and address.

    Raises:
        BrokerError: it cannot be had.
    """
    jars = fetch_all("broker")
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="kafka-") as name:
            try:
                process, servers = launch(Path(name), jars)
            except (BrokerError, OSError) as error:
                # Somebody else may have taken a port between our look and Kafka's.
                if attempt == ATTEMPTS - 1:
                    raise BrokerError(str(error)) from error
                continue
            try:
                yield process, servers
            finally:
                end(process)
            return


def is_input_open() -> bool:
    """Wait a moment; whether standard input still has another end."""
    readable, _, _ = select.select([sys.stdin], [], [], 0.1)
    return not readable or bool(os.read(sys.stdin.fileno(), 1024))


def is_forever() -> bool:
    """Wait a moment."""
    time.sleep(0.1)
    return True


def exit_quietly(*_: object) -> NoReturn:
    """End by a signal as by itself, so that nothing is left behind."""
    sys.exit(0)


def keep_running(goes_on: Callable[[], bool], tell: Callable[[str], None]) -> int:
    """Run a broker as long as ``goes_on`` says; 1 when it dies by itself.

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
    """Print the address for a program to read."""
    print(json.dumps({"servers": servers}), flush=True)


def run() -> int:
    """Keep a broker until standard input ends."""
    return keep_running(is_input_open, say)


def serve() -> int:
    """Keep a broker until a signal, and hold the lock by which others see that it runs."""
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
    """Return the address and process id of the broker that ``start`` started; None when none runs."""
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
    """Start a broker in the background, unless one runs, and print its address."""
    if found := find_running():
        print(found["servers"])
        return 0
    command = [sys.executable, "-m", "scripts.kafka_broker", "serve"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
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
    """Print the address of the broker that runs; 1 when none does."""
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
    """Run a command; 1 with one line of reason on stderr when it cannot be."""
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

"""Jobs for Spark processes, and how they are started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.interop.engines import UnavailableError

from bench import paimon_spark
from bench.iceberg_catalog import compile_catalog
from bench.jars import fetch_peer
from bench.result import Section, from_json
from bench.settings import DATA, ROOT, Settings
from bench.spark_session import SparkJob

PLAIN = "plain"


class SparkFailedError(Exception):
    """A Spark process ended with an error; the message is the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSet:
    """A peer that can be measured.

    Attributes:
        jars: its JARs, for the session.
        other: interpreter and JAR of a peer that runs in a separate Spark.
        python: the interpreter of the session.
    """

    name: str
    jars: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    python: str = sys.executable


def find_peers(kind: str, settings: Settings) -> tuple[tuple[PeerSet, ...], tuple[str, ...]]:
    """Return the peers that can be measured in a kind of job, and why others cannot; without any, a plain session."""
    found, notes = [], []
    for peer in settings.peers:
        if peer == "paimon" and kind not in paimon_spark.KINDS:
            continue
        try:
            found.append(_find_peer(peer))
        except (OSError, UnavailableError) as error:
            notes.append(f"{peer} is left out: {error}")
    return tuple(found) or (PeerSet(name=PLAIN),), tuple(notes)


def _find_peer(peer: str) -> PeerSet:
    if peer == "paimon":
        return PeerSet(name=peer, other=paimon_spark.install())
    jars = fetch_peer(peer)
    if peer == "iceberg":
        jars = (*jars, compile_catalog(jars))
    return PeerSet(name=peer, jars=tuple(map(str, jars)))


def run_spark(kind: str, peer: PeerSet, settings: Settings, **arguments: Any) -> Section:  # noqa: ANN401 - JSON
    """Run a job in a separate process and return its measurements.

    Raises:
        SparkFailedError: it failed.
    """
    DATA.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="run-", dir=DATA)
    try:
        job = SparkJob(
            kind=kind,
            peer=peer.name,
            jars=peer.jars,
            folder=folder,
            settings=settings,
            arguments=arguments,
            other=peer.other,
        )
        return _run(job, peer.python)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(job: SparkJob, python: str) -> Section:
    answer = Path(job.folder) / "answer.json"
    log = Path(job.folder) / "log.txt"
    with log.open("w") as stderr:
        done = subprocess.run(
            [python, "-m", "bench.spark_worker", answer],
            input=json.dumps(asdict(job)),
            text=True,
            stdout=sys.stderr,
            stderr=stderr,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
    if done.returncode or not answer.exists():
        message = f"{job.kind} beside {job.peer} failed:\n{log.read_text()[-4000:]}"
        raise SparkFailedError(message)
    return from_json(json.loads(answer.read_text()))

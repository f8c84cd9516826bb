"""The JARs of the peers, pinned in jars.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from scripts.fetch_jars import Jar, fetch

PINS: Final = Path(__file__).with_name("jars.toml")


def peer_jars(peer: str) -> tuple[Jar, ...]:
    """Return the pins of a peer."""
    entries = tomllib.loads(PINS.read_text())["jar"]
    return tuple(Jar(artifact=each["artifact"], sha256=each["sha256"]) for each in entries if each["peer"] == peer)


def fetch_peer(peer: str) -> tuple[Path, ...]:
    """Return the paths of a peer's JARs; fetch those that are missing.

    Raises:
        OSError: one of them could not be fetched.
    """
    return tuple(fetch(jar) for jar in peer_jars(peer))


def peer_version(peer: str) -> str:
    """Return the coordinates of a peer's main JAR."""
    return peer_jars(peer)[0].artifact

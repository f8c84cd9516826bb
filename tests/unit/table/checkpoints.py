"""A query's checkpoint in memory."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class MemoryCheckpoint:
    """Our files in a checkpoint."""

    files: dict[str, bytes] = field(default_factory=dict)
    place: str = "file:/checkpoint"

    def list(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

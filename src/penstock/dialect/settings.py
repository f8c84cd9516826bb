"""The settings of a session: the Flink keys that Penstock supports.

Source:
    Flink's configuration keys of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError
from penstock.options import parse_duration_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MADE_FOR_SPARK: Final = "spark."

_MODE: Final = "execution.runtime-mode"
_CHECKPOINTS: Final = ("execution.checkpointing.dir", "state.checkpoints.dir")
_INTERVAL: Final = "execution.checkpointing.interval"
_NAME: Final = "pipeline.name"
_SYNC: Final = "table.dml-sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parsed settings for queries and inserts.

    Attributes:
        is_streaming: whether tables are read as streams.
        checkpoints: parent directory of the checkpoints of streaming inserts; None for a temporary directory.
        interval_ms: interval between the micro-batches of a streaming insert; None to run them without a pause.
        name: name of the streaming queries.
        waits: whether the next statement starts only after a streaming insert has ended.
    """

    is_streaming: bool
    checkpoints: str | None
    interval_ms: int | None
    name: str | None
    waits: bool


def read_settings(given: Mapping[str, str]) -> Settings:
    """Parse the settings of a session; the values were checked when they were set."""
    interval = given.get(_INTERVAL)
    return Settings(
        is_streaming=given.get(_MODE, "batch").lower() == "streaming",
        checkpoints=next((given[key] for key in _CHECKPOINTS if key in given), None),
        interval_ms=None if interval is None else parse_duration_ms(interval),
        name=given.get(_NAME),
        waits=given.get(_SYNC, "false").lower() == "true",
    )


def check_setting(key: str, value: str) -> bool:
    """Check the value of a setting.

    Returns:
        Whether Penstock uses the setting.

    Raises:
        InvalidOptionError: the key does not accept the value.
    """
    if key not in _CHECKS:
        return False
    expected = _CHECKS[key](value)
    if expected is not None:
        raise InvalidOptionError(f"SET '{key}' = '{value}': expected {expected}")
    return True


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda value: None if value.lower() in words else " or ".join(f"'{word}'" for word in words)


def _duration(value: str) -> str | None:
    try:
        parse_duration_ms.decode(value)
    except ValueError as error:
        return str(error)
    return None


def _text(value: str) -> str | None:
    return None if value.strip() else "a text"


_CHECKS: Final[Mapping[str, Callable[[str], str | None]]] = {
    _MODE: _one_of("batch", "streaming"),
    **dict.fromkeys(_CHECKPOINTS, _text),
    _INTERVAL: _duration,
    _NAME: _text,
    _SYNC: _one_of("true", "false"),
}
KEYS: Final = tuple(_CHECKS)
"""The settings that Penstock uses."""

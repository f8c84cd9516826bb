"""Results, as values, as JSON and as text."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from bench.measure import Series

if TYPE_CHECKING:
    from collections.abc import Sequence

OURS: Final = "Penstock"
PARQUET: Final = "Spark Parquet"
PARQUET_BUCKETS: Final = f"{PARQUET} bucketBy(8)"
PARQUET_PARTITIONS: Final = f"{PARQUET} partitionBy 8"
DELTA: Final = "Delta"
ICEBERG: Final = "Iceberg"
PAIMON: Final = "Paimon on Spark 3.5"
PARQUET_35: Final = "Parquet on Spark 3.5"
PYPAIMON: Final = "pypaimon"
PYARROW: Final = "pyarrow"
IN_DRIVER: Final = "in the driver"
BY_CONNECT: Final = "through Spark Connect"
BY_THRIFT: Final = "through the Thrift server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A figure, with its target if it has one.

    Attributes:
        values: one per round; their median counts.
        unit: ``x``, ``s``, ``MB`` or a word.
        at_least: minimum, if the target is one.
        at_most: maximum, if the target is one.
    """

    name: str
    values: tuple[float, ...]
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """``PASS``, or by how much the target is missed; empty without a target."""
        if self.at_least is not None:
            missing = 1 - self.value / self.at_least
        elif self.at_most is not None:
            missing = self.value / self.at_most - 1
        else:
            return ""
        return "PASS" if missing <= 0 else f"short by {missing:.0%}"

    @property
    def target(self) -> str:
        """The target as text."""
        if self.at_least is not None:
            return f">= {_number(self.at_least)} {self.unit}"
        return "" if self.at_most is None else f"<= {_number(self.at_most)} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One benchmark.

    Attributes:
        notes: what was omitted and why, one line each.
    """

    name: str
    title: str
    series: tuple[Series, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()


def faster_than(ours: Series, peer: Series, *, at_least: float | None = None, name: str = "") -> Check:
    """Return how many times as fast as the peer we are, round by round."""
    pairs = zip(peer.seconds, ours.seconds, strict=True)
    label = name or f"{ours.work}: {ours.contender} vs {peer.contender}"
    label += f" ({ours.session} session)" if ours.session else ""
    return Check(name=label, values=tuple(theirs / mine for theirs, mine in pairs), unit="x", at_least=at_least)


def time_next_to(ours: Series, peer: Series, *, at_most: float | None = None) -> Check:
    """Return our time as a multiple of the peer's, round by round."""
    pairs = zip(ours.seconds, peer.seconds, strict=True)
    label = f"{ours.work}: time of {ours.contender} next to {peer.contender}"
    label += f" ({ours.session} session)" if ours.session else ""
    return Check(name=label, values=tuple(mine / theirs for mine, theirs in pairs), unit="x", at_most=at_most)


def find_series(series: Sequence[Series], work: str, contender: str, session: str = "") -> Series | None:
    """Return the series of a contender for a task, if it was measured."""
    found = (each for each in series if (each.work, each.contender, each.session) == (work, contender, session))
    return next(found, None)


def to_json(section: Section) -> dict[str, Any]:
    """Return raw times and derived figures."""
    data = asdict(section)
    for check, raw in zip(section.checks, data["checks"], strict=True):
        raw |= {"median": check.value, "verdict": check.verdict}
    return data


def from_json(data: dict[str, Any]) -> Section:
    """Parse the output of ``to_json``."""
    fields = ("name", "values", "unit", "at_least", "at_most")
    return Section(
        name=data["name"],
        title=data["title"],
        series=tuple(Series(**{**each, "seconds": tuple(each["seconds"])}) for each in data["series"]),
        checks=tuple(
            Check(**{key: tuple(each[key]) if key == "values" else each[key] for key in fields})
            for each in data["checks"]
        ),
        notes=tuple(data["notes"]),
    )


def to_markdown(section: Section) -> str:
    """Return the tables of a section."""
    lines = [f"## {section.title}", ""]
    if section.series:
        rows = [_series_row(each) for each in section.series]
        lines += [*to_table(("work", "contender", "session", "median", "min - max", "rows/s"), rows), ""]
    if section.checks:
        rows = [
            (each.name, f"{_number(each.value)} {each.unit}", _spread(each.values), each.target, each.verdict)
            for each in section.checks
        ]
        lines += [*to_table(("figure", "median", "min - max", "target", "verdict"), rows), ""]
    lines += [f"* {note}" for note in section.notes]
    return "\n".join(lines).rstrip() + "\n"


def _series_row(series: Series) -> tuple[str, ...]:
    rate = f"{series.rows / series.median / 1e6:.2f} M" if series.rows else ""
    return (
        series.work,
        series.contender,
        series.session,
        f"{_number(series.median)} s",
        _spread(series.seconds),
        rate,
    )


def to_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    texts = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    rule = "-|-".join("-" * width for width in widths)
    return [f"| {texts[0]} |", f"|-{rule}-|", *(f"| {text} |" for text in texts[1:])]


def _spread(values: Sequence[float]) -> str:
    return f"{_number(min(values))} - {_number(max(values))}"


def _number(value: float) -> str:
    """Format with three significant digits."""
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"

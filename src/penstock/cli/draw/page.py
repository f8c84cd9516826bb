"""The report: one self-contained page, with a timeline of a table's commits, files and readers."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from penstock.api.history import evaluate
from penstock.cli.draw.bins import to_bins, window_of
from penstock.cli.draw.health import LEGEND, MARKS, MEANINGS, checks_of, headline, snapshots_read
from penstock.cli.draw.labels import count_text, duration_words, name_text, rate_words, time_text
from penstock.cli.draw.node import node, to_html
from penstock.cli.draw.plot import band, bars, plot, step_area, steps, thin_out, x_labels
from penstock.cli.draw.result import draw_result
from penstock.cli.draw.rows import commit_lanes, reader_lanes, tag_lane
from penstock.cli.draw.scale import bytes_axis, duration_axis, number_axis, time_axis
from penstock.cli.draw.tables import (
    bucket_bars,
    commit_table,
    order_table,
    partition_bars,
    reader_table,
    stalled_watermark_table,
    tag_table,
)
from penstock.format.snapshot import CommitKind
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from penstock.api.history import TableHistory
    from penstock.cli.draw.bins import Bin, Window
    from penstock.cli.draw.health import HealthCheck
    from penstock.cli.draw.result import Result
    from penstock.cli.draw.scale import Axis


def draw_page(histories: Sequence[TableHistory], results: Sequence[Result] = ()) -> str:
    """Return the page about some tables and results as HTML."""
    names = [name_text(history.name) for history in histories]
    title = names[0] if len(names) == 1 else f"{len(names)} tables"
    return to_html(
        node(
            "html",
            {"lang": "en"},
            node(
                "head",
                {},
                node("meta", {"charset": "utf-8"}),
                node("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
                node("meta", {"name": "color-scheme", "content": "light dark"}),
                node("title", {}, f"Penstock report: {title}"),
                node("style", {}, _resource("report.css")),
            ),
            node(
                "body",
                {},
                _contents(histories) if len(histories) > 1 else None,
                node(
                    "main",
                    {},
                    *(_table_section(history, number) for number, history in enumerate(histories)),
                    *(draw_result(result) for result in results),
                ),
                node("script", {}, _resource("report.js")),
            ),
        )
    )


def _resource(name: str) -> str:
    return files("penstock.cli.draw").joinpath(name).read_text("utf-8")


def _contents(histories: Sequence[TableHistory]) -> Element:
    rows = []
    for number, history in enumerate(histories):
        marks = [
            node("span", {"class": check.status.value, "title": _meaning(check)}, MARKS[check.status])
            for check in checks_of(history)
        ]
        label = "; ".join(_meaning(check) for check in checks_of(history))
        link = node("a", {"href": f"#table-{number}"}, name_text(history.name))
        rows.append(node("li", {}, link, " ", node("span", {"role": "img", "aria-label": label}, *marks)))
    return node("nav", {"aria-label": "Tables"}, node("ul", {}, *rows))


def _meaning(check: HealthCheck) -> str:
    return f"{check.topic}: {MEANINGS[check.status]}"


def _table_section(history: TableHistory, number: int) -> Element:
    return node(
        "article",
        {"id": f"table-{number}"},
        node(
            "header",
            {},
            node("h1", {}, name_text(history.name)),
            node("p", {"class": "headline"}, headline(history)),
            node("p", {"class": "note"}, f"{name_text(history.location)}, schema {history.schema_id}"),
            node(
                "p",
                {"class": "note"},
                f"Seen {time_text(history.seen_millis)} UTC; {snapshots_read(history)}.",
            ),
        ),
        _signs(history),
        node("p", {"class": "note"}, LEGEND),
        *_charts(history),
    )


def _signs(history: TableHistory) -> Element:
    rows = []
    for check in checks_of(history):
        mark = node(
            "td",
            {"class": f"mark {check.status.value}", "title": MEANINGS[check.status]},
            node("span", {"aria-hidden": "true"}, MARKS[check.status]),
            node("span", {"class": "hidden"}, MEANINGS[check.status]),
        )
        rows.append(node("tr", {}, mark, node("th", {"scope": "row"}, check.topic), node("td", {}, check.text)))
    return node("table", {"class": "signs"}, node("tbody", {}, *rows))


def _charts(history: TableHistory) -> list[Element]:
    if not history.commits:
        return [node("p", {"class": "empty"}, "Nothing was ever committed to this table: no charts.")]
    parts = [
        node(
            "section",
            {},
            node("h2", {}, "Over time"),
            node(
                "p", {"class": "hidden"}, f"Charts of {snapshots_read(history)}. Their numbers are in the table below."
            ),
            draw_timeline(history),
            _details("Commits in numbers", commit_table(history)),
            _details(f"Stalls of the watermark ({len(history.standstills):,})", stalled_watermark_table(history))
            if history.standstills
            else None,
        )
    ]
    sizes = [partition_bars(history)] if history.partition_keys else []
    sizes += [bucket_bars(history)] if history.total_buckets > 0 else []
    if sizes:
        parts.append(node("section", {}, node("h2", {}, "Where the rows are"), *sizes))
    if history.order is not None and history.order.shown:
        parts.append(
            node(
                "section",
                {},
                node("h2", {}, "Order in the queue"),
                node("p", {"class": "note"}, f"{_order_text(history)}"),
                order_table(history),
            )
        )
    if history.readers:
        parts.append(node("section", {}, node("h2", {}, "Readers"), reader_table(history)))
    if history.tags:
        parts.append(node("section", {}, node("h2", {}, "Tags"), tag_table(history)))
    return parts


def _order_text(history: TableHistory) -> str:
    text = next(check.text for check in checks_of(history) if check.topic == "order")
    return f"Order {text}. Each block is a file, or several that are too small to draw one by one."


def _details(title: str, content: Element) -> Element:
    return node("details", {}, node("summary", {}, title), content)


_BINS: Final = 120
_TICKS: Final = 10


def draw_timeline(history: TableHistory) -> Element:
    """Return the charts over time of a table with commits."""
    window = window_of(history, _BINS)
    axis = time_axis(window.first, window.last, _TICKS)
    bins = to_bins(history.commits, window)
    every = rate_words(window.step_ms)
    panels = [
        commit_lanes(history, axis, _end_note(history, window)),
        tag_lane(history, axis),
        _rows(bins, axis, every),
        _bytes(bins, axis, every),
        _files(history, axis),
        _watermark(history, axis),
        reader_lanes(history, axis),
    ]
    return node(
        "div",
        {"class": "timeline"},
        *(panel for panel in panels if panel is not None),
        x_labels(axis, "UTC", now=axis.place(history.seen_millis) if window.shows_now else None),
        _hits(bins),
        node("div", {"class": "cursor", "hidden": "hidden"}),
        node("div", {"class": "tip", "hidden": "hidden"}),
    )


def _end_note(history: TableHistory, window: Window) -> str:
    if window.shows_now:
        return ""
    ago = history.seen_millis - history.commits[-1].snapshot.time_millis
    return f"; the axis ends with the last one, {duration_words(ago)} ago" if ago > 0 else ""


def panel(title: str, text: str, *parts: Element, keys: Sequence[tuple[str, str]] = ()) -> Element:
    """Return a chart with its heading.

    Args:
        keys: kind of mark and what it means.
    """
    parts_of_head = [node("b", {}, title)]
    parts_of_head += [node("span", {"class": "key"}, node("i", {"class": kind}), meaning) for kind, meaning in keys]
    parts_of_head += [node("span", {"class": "note"}, text)]
    # Without spaces between them, a browser may only break a line inside of a figure.
    head = node("p", {"class": "head"}, *[item for each in parts_of_head for item in (each, " ")])
    return node("div", {"class": "panel"}, head, *parts)


def _rows(bins: Sequence[Bin], axis: Axis, every: str) -> Element:
    overwrites = any(each.overwritten_rows or each.removed_rows for each in bins)
    most = max(each.appended_rows + each.overwritten_rows for each in bins)
    scale = number_axis(most, -max(each.removed_rows for each in bins))
    zero = scale.place(0)
    appended = [(*_sides(each, axis), zero, scale.place(each.appended_rows)) for each in bins]
    overwritten = [
        (
            *_sides(each, axis),
            scale.place(each.appended_rows),
            scale.place(each.appended_rows + each.overwritten_rows),
        )
        for each in bins
    ]
    removed = [(*_sides(each, axis), scale.place(-each.removed_rows), zero) for each in bins]
    keys = [("append", "appended"), ("overwrite", "by overwrites; below 0 what they replaced")]
    total = sum(each.appended_rows + each.overwritten_rows for each in bins)
    return panel(
        f"Rows written per {every}",
        f"{total:,} in all",
        plot(
            [bars("append", appended), bars("overwrite", overwritten), bars("overwrite", removed)],
            scale,
            x_axis=axis,
        ),
        keys=keys if overwrites else (),
    )


def _bytes(bins: Sequence[Bin], axis: Axis, every: str) -> Element:
    scale = bytes_axis(max(each.new_bytes + each.merged_bytes for each in bins))
    new = [(*_sides(each, axis), 0.0, scale.place(each.new_bytes)) for each in bins]
    merged = [
        (*_sides(each, axis), scale.place(each.new_bytes), scale.place(each.new_bytes + each.merged_bytes))
        for each in bins
    ]
    new_bytes, merged_bytes = sum(each.new_bytes for each in bins), sum(each.merged_bytes for each in bins)
    keys = [("append", f"new rows, {bytes_text(new_bytes)}"), ("compact", f"merges, {bytes_text(merged_bytes)}")]
    return panel(
        f"Bytes written per {every}",
        "" if merged_bytes else f"{bytes_text(new_bytes)} in all",
        plot([bars("append", new), bars("compact", merged)], scale, x_axis=axis),
        keys=keys if merged_bytes else (),
    )


def _files(history: TableHistory, axis: Axis) -> Element:
    times = _places(history, axis)
    live = thin_out([(x, float(commit.live.files)) for x, commit in zip(times, history.commits, strict=True)])
    small = thin_out([(x, float(commit.live.small_files)) for x, commit in zip(times, history.commits, strict=True)])
    scale = number_axis(max(commit.live.files for commit in history.commits))
    latest = history.commits[-1].live
    return panel(
        "Live files",
        f"{latest.files:,} now, {latest.small_files:,} of them small",
        plot(
            [
                step_area("small", [(x, scale.place(y)) for x, y in small], until=_end(history, axis)),
                steps("live", [(x, scale.place(y)) for x, y in live], until=_end(history, axis)),
            ],
            scale,
            x_axis=axis,
        ),
        keys=[("live", "all"), ("small", _small_text(history))],
    )


def _small_text(history: TableHistory) -> str:
    if history.debt is None:
        return "small"
    waiting = history.debt.waiting_files
    return f"small; a compaction would merge {waiting:,}" if waiting else "small; nothing to merge"


def _watermark(history: TableHistory, axis: Axis) -> Element:
    pairs = list(zip(_places(history, axis), history.commits, strict=True))
    lags = [(x, commit.event_time_lag_ms) for x, commit in pairs]
    known = [(x, float(lag)) for x, lag in lags if lag is not None]
    if not known:
        return panel("Event time lag", _no_watermark(history))
    most, least = max(lag for _, lag in known), min(lag for _, lag in known)
    if least > history.commits[-1].snapshot.time_millis - history.commits[0].snapshot.time_millis:
        return _event_time(history, axis, known)
    scale = duration_axis(most, least)
    bands = _long_stalls(history, axis)
    return panel(
        "Event time lag",
        f"commit time less watermark, {duration_words(known[-1][1])} at the last commit",
        plot([*bands, steps("lag", [(x, scale.place(y)) for x, y in thin_out(known)])], scale, x_axis=axis),
        keys=[("lag", "lag"), ("still", "watermark stalled")] if bands else (),
    )


def _event_time(history: TableHistory, axis: Axis, known: Sequence[tuple[float, float]]) -> Element:
    """Draw the watermark itself: if old data is written, the lag only shows the age of the data."""
    points = [
        (x, float(commit.watermark))
        for x, commit in zip(_places(history, axis), history.commits, strict=True)
        if commit.watermark is not None and commit.event_time_lag_ms is not None
    ]
    first, last = min(y for _, y in points), max(y for _, y in points)
    scale = time_axis(first, max(last, first + 1), 4)
    bands = _long_stalls(history, axis)
    places = [(x, scale.place(y)) for x, y in thin_out(points)]
    return panel(
        "Watermark",
        f"{time_text(round(first))} to {time_text(round(last))} of event time; old data, "
        f"{duration_words(known[-1][1])} before the clock, so the chart shows the watermark instead of its lag",
        plot([*bands, steps("lag", places)], scale, x_axis=axis),
        keys=[("lag", "watermark"), ("still", "stalled")] if bands else (),
    )


def _long_stalls(history: TableHistory, axis: Axis) -> list[Element]:
    least = evaluate(history).staleness_threshold_ms or 0
    return [
        band("still", max(0.0, axis.place(each.from_millis)), axis.place(each.to_millis))
        for each in history.standstills
        if each.duration_ms > least
    ]


def _no_watermark(history: TableHistory) -> str:
    if history.event_time_column is None:
        return "no watermark: the table declares none"
    return "no watermark: none of the snapshots read has one"


def _hits(bins: Sequence[Bin]) -> Element:
    rects = [
        node("rect", {"x": place, "y": 0, "width": 1, "height": 1}, node("title", {}, _tip(each)))
        for place, each in enumerate(bins)
    ]
    attributes = {"class": "hits", "viewBox": f"0 0 {len(bins)} 1", "preserveAspectRatio": "none"}
    return node("svg", {**attributes, "aria-hidden": "true", "focusable": "false"}, *rects)


def _tip(each: Bin) -> str:
    lines = [f"{time_text(each.first)} UTC, {duration_words(each.last - each.first)}"]
    counts = [
        f"{count:,} {kind.value}"
        for kind in CommitKind
        if (count := sum(commit.snapshot.commit_kind is kind for commit in each.commits))
    ]
    lines.append(", ".join(counts) if counts else "no commits")
    if each.appended_rows or each.overwritten_rows:
        lines.append(f"{count_text(each.appended_rows + each.overwritten_rows, 'row')} written")
    if each.new_bytes or each.merged_bytes:
        lines.append(f"{bytes_text(each.new_bytes)} of new rows, {bytes_text(each.merged_bytes)} by merges")
    if each.end is not None:
        live = each.end.live
        lines.append(f"then {count_text(live.files, 'file')}, {live.small_files:,} small")
        if each.end.event_time_lag_ms is not None:
            lines.append(f"event time lag {duration_words(each.end.event_time_lag_ms)}")
    return "\n".join(lines)


def _sides(each: Bin, axis: Axis) -> tuple[float, float]:
    return axis.place(each.first), axis.place(each.last)


def _places(history: TableHistory, axis: Axis) -> list[float]:
    """Return the place of each commit; with the clocks of several committers a later commit may come first."""
    places = []
    before = 0.0
    for commit in history.commits:
        before = max(before, axis.place(commit.snapshot.time_millis))
        places.append(before)
    return places


def _end(history: TableHistory, axis: Axis) -> float:
    return min(1.0, max(axis.place(history.seen_millis), _places(history, axis)[-1]))

"""The report: one self-contained page."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from penstock.cli.draw.health import MARKS, MEANINGS, checks_of, headline, snapshots_read
from penstock.cli.draw.labels import name_text, time_text
from penstock.cli.draw.node import node, to_html
from penstock.cli.draw.result import draw_result
from penstock.cli.draw.tables import (
    bucket_bars,
    commit_table,
    order_table,
    partition_bars,
    reader_table,
    stalled_watermark_table,
    tag_table,
)
from penstock.cli.draw.timeline import draw_timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from penstock.api.history import TableHistory
    from penstock.cli.draw.health import HealthCheck
    from penstock.cli.draw.result import Result


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

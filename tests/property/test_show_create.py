"""The statement that SHOW CREATE TABLE of ``penstock.sql`` shows creates the same table, whatever its texts are."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.catalog.changes import SetOption, UpdateColumnComment, UpdateComment

NUMBERS = itertools.count()
TEXTS = st.text(
    st.one_of(st.sampled_from("\\\\''\"`;/*- \n"), st.characters(exclude_categories=("Cs", "Cc"))), min_size=1
)


@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_any_text_is_shown_whole(texts: list[str]) -> None:
    catalog = penstock.Catalog(f"memory://show-create-{next(NUMBERS)}")
    catalog.create_database("d")
    catalog.create_table("d.t", "a INT, b ROW<x INT>")
    catalog.alter_table(
        "d.t",
        UpdateColumnComment(column=("a",), comment=texts[0]),
        UpdateColumnComment(column=("b", "x"), comment=texts[1]),
        UpdateComment(comment=texts[2]),
        SetOption(key="partition.timestamp-pattern", value=texts[3]),
    )
    expected = replace(catalog.load_table("d.t").schema, id=0, time_millis=0)
    shown = penstock.sql(None, catalog, "SHOW CREATE TABLE d.t")
    catalog.drop_table("d.t")
    penstock.sql(None, catalog, shown["result"][0].as_py())
    assert replace(catalog.load_table("d.t").schema, id=0, time_millis=0) == expected

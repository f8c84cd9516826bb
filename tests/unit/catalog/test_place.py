"""Tables at a path, without a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import Catalog, Table
from penstock.catalog.place import load_location
from penstock.errors import NotFoundError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["shop.events", "penstock.shop.events"])
def test_a_name_in_place_of_a_path_is_answered_with_what_takes_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for load in Table.at, load_location:
        with pytest.raises(
            NotFoundError, match=r"expected the path of a table.*load_table\('.*spark\.table\('"
        ) as raised:
            load(name)
        assert "create it" not in str(raised.value)
    with pytest.raises(NotFoundError, match="there is no schema file"):
        load_location(f"./{name}")


def test_a_path_that_looks_like_a_name_is_one_where_there_is_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Catalog(tmp_path).create_table(str(tmp_path / "shop.events"), "n INT")
    assert Table.at("shop.events").location == str(tmp_path / "shop.events")

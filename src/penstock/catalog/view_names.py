"""The name resolution of a view's text, stored in options because Paimon's view format has no field for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.catalog.stored_view import COLUMNS, NAMESPACE, OWN

if TYPE_CHECKING:
    from penstock.catalog.stored_view import View

CATALOG: Final = f"{OWN}catalog"
STORED_IN: Final = f"{OWN}stored-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewNames:
    """How the names in a view are resolved.

    Attributes:
        stored_in: name of the view's catalog where it was created; None if unknown.
        catalog: for names without a catalog; None for the view's catalog.
        namespace: for names without a database.
        columns: names of the query's columns that the view has; empty for all, by position.
    """

    stored_in: str | None
    catalog: str | None
    namespace: tuple[str, ...]
    columns: tuple[str, ...]


def view_names(view: View, database: str) -> ViewNames:
    """Return the name resolution of a view; for another engine's view, the database where it is stored."""
    options = dict(view.options)
    return ViewNames(
        stored_in=options.get(STORED_IN),
        catalog=options.get(CATALOG),
        namespace=tuple(json.loads(options.get(NAMESPACE, json.dumps([database])))),
        columns=tuple(json.loads(options.get(COLUMNS, "[]"))),
    )

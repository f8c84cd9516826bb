"""What the names in a view's text mean, which Paimon's form of a view has no place for: options of the view."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.catalog.stored_view import View

OWN: Final = "spark.view."
"""Begins the options that Spark's catalog stores."""

CATALOG: Final = f"{OWN}catalog"
STORED_IN: Final = f"{OWN}stored-in"
NAMESPACE: Final = f"{OWN}namespace"
COLUMNS: Final = f"{OWN}query-columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewNames:
    """What names mean.

    Attributes:
        stored_in: what the catalog of the view was called where it was made; None if it is not known.
        catalog: of names without one; None for the catalog of the view.
        namespace: of names without a database.
        columns: names of the query's columns that the view has; empty for all, by their places.
    """

    stored_in: str | None
    catalog: str | None
    namespace: tuple[str, ...]
    columns: tuple[str, ...]


def view_names(view: View, database: str) -> ViewNames:
    """Return what the names in a view mean; those of another engine's are of the database where it is stored."""
    options = dict(view.options)
    return ViewNames(
        stored_in=options.get(STORED_IN),
        catalog=options.get(CATALOG),
        namespace=tuple(json.loads(options.get(NAMESPACE, json.dumps([database])))),
        columns=tuple(json.loads(options.get(COLUMNS, "[]"))),
    )

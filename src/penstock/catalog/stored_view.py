"""The stored form of a view: Paimon's, which is used in its REST protocol and in view files of a directory.

Source:
    Paimon ``api:view/ViewSchema.java``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InvalidOptionError, InvalidSchemaError
from penstock.format.schema import assign_field_ids
from penstock.format.text.json import JsonObject, decode_json, load_json
from penstock.format.types.text import decode_field, encode_field
from penstock.printable import mask_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.types.data_types import DataField
    from penstock.format.types.ddl import ColumnSpec

SPARK: Final = "spark"
"""The dialect of texts for Spark."""

OWN: Final = "spark.view."
"""Begins the options that Spark's catalog stores."""

NAMESPACE: Final = f"{OWN}namespace"
COLUMNS: Final = f"{OWN}query-columns"

_WHAT: Final = "view"
_CURE: Final = "create the view again"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class View:
    """A view of a catalog: columns and the text of a query.

    Attributes:
        fields: its columns.
        query: its text for engines without a specific dialect.
        dialects: pairs of an engine, such as ``spark``, and the text for it.
        comment: None when it has none.
        options: pairs; those that begin with ``spark.view.`` hold what Spark stores in addition to the text.
    """

    fields: tuple[DataField, ...]
    query: str
    dialects: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        # Hints in a query may have options with secrets.
        dialects = tuple((engine, mask_text(text)) for engine, text in self.dialects)
        return (
            f"{type(self).__name__}(fields={self.fields!r}, query={mask_text(self.query)!r}, dialects={dialects!r}, "
            f"comment={self.comment!r})"
        )

    def text_for(self, dialect: str) -> str:
        """Return the query for an engine."""
        return dict(self.dialects).get(dialect, self.query)


def view_fields(columns: Iterable[ColumnSpec]) -> tuple[DataField, ...]:
    """Return the columns of a new view, with ids."""
    return assign_field_ids(columns)[0]


def new_view(name: str, query: str, columns: Iterable[ColumnSpec], *, comment: str | None) -> View:
    """Return a view of a query in Spark SQL. Raises ``InvalidSchemaError`` or ``InvalidOptionError``."""
    if not query.strip():
        raise InvalidOptionError(f"view {name}: there is no text of a query; give one in Spark's SQL")
    fields = view_fields(columns)
    names = [field.name.lower() for field in fields]
    repeated = next((each for each in names if names.count(each) > 1), None)
    if repeated is not None:
        raise InvalidSchemaError(f"view {name}: column '{repeated}' is duplicated; each column needs its own name")
    return View(fields=fields, query=query, dialects=((SPARK, query),), comment=comment)


def view_body(view: View) -> dict[str, Any]:
    """Return the JSON object of a view."""
    return {
        "fields": [encode_field(each) for each in view.fields],
        "query": view.query,
        "dialects": dict(view.dialects),
        "comment": view.comment,
        "options": dict(view.options),
    }


def parse_view(body: object, name: str) -> View:
    """Return the view that a JSON object describes.

    Args:
        name: of the view, for messages.

    Raises:
        FormatError: it is not a view.
    """
    return _view_of(JsonObject(body if isinstance(body, dict) else {}, _WHAT, name, _CURE))


def encode_view(view: View) -> bytes:
    """Return the bytes of a view's file."""
    return json.dumps(view_body(view), indent=2, ensure_ascii=False).encode()


def decode_view(data: bytes, name: str) -> View:
    """Return the view of a file. Raises ``FormatError``."""
    return _view_of(decode_json(data, _WHAT, name, _CURE))


def _view_of(body: JsonObject) -> View:
    try:
        fields = tuple(decode_field(each) for each in (body.items("fields") if body.values.get("fields") else ()))
    except InvalidSchemaError as error:
        raise body.error(f"has damaged columns ({error})") from error
    options = body.text_pairs("options")
    for key in (NAMESPACE, COLUMNS):
        if not _is_list_of_names(dict(options).get(key, "[]")):
            raise body.error(f"has an option '{key}' that is no JSON list of names")
    return View(
        fields=fields,
        query=body.text("query"),
        dialects=body.text_pairs("dialects"),
        comment=body.optional_text("comment"),
        options=options,
    )


def _is_list_of_names(text: str) -> bool:
    try:
        names = load_json(text.encode())
    except ValueError:
        return False
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


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

"""The stored form of a view: Paimon's, which is used in its REST protocol and in view files of a directory.

Source:
    Paimon ``api:view/ViewSchema.java``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import FormatError, InvalidOptionError, InvalidSchemaError
from penstock.format.types.field_ids import assign_field_ids
from penstock.format.types.text import decode_field, encode_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.format.types.data_types import DataField
    from penstock.format.types.ddl import ColumnSpec

SPARK: Final = "spark"
"""The dialect of texts for Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

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


def parse_view(body: object, what: str) -> View:
    """Return the view that a JSON object describes.

    Args:
        what: first words of the error message.

    Raises:
        FormatError: it is not a view.
    """
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise FormatError(f"{what}: its definition has no query; create the view again")
    comment = body.get("comment")
    try:
        fields = tuple(decode_field(each) for each in body.get("fields") or ())
    except InvalidSchemaError as error:
        raise FormatError(f"{what}: its definition is damaged ({error}); create the view again") from error
    return View(
        fields=fields,
        query=body["query"],
        dialects=_pairs(body.get("dialects")),
        comment=None if comment is None else str(comment),
        options=_pairs(body.get("options")),
    )


def encode_view(view: View) -> bytes:
    """Return the bytes of a view's file."""
    return json.dumps(view_body(view), indent=2, ensure_ascii=False).encode()


def decode_view(data: bytes, what: str) -> View:
    """Return the view of a file. Raises ``FormatError``."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise FormatError(f"{what}: its file is not JSON ({error}); create the view again") from error
    return parse_view(body, what)


def _pairs(found: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in (found or {}).items())

"""The stored form of a view: Paimon's, which its REST protocol sends and which a file of a directory holds.

Source:
    Paimon ``api:view/ViewSchema.java``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import FormatError, InvalidSchemaError
from penstock.format.types.field_ids import assign_field_ids
from penstock.format.types.text import decode_field, encode_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.format.types.data_types import DataField
    from penstock.format.types.ddl import ColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredView:
    """A view: columns and the text of a query.

    Attributes:
        fields: its columns.
        query: its text for engines without a dialect of their own.
        dialects: pairs of an engine, such as ``spark``, and the text for it.
        options: pairs.
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


def view_body(view: StoredView) -> dict[str, Any]:
    """Return the JSON object of a view."""
    return {
        "fields": [encode_field(each) for each in view.fields],
        "query": view.query,
        "dialects": dict(view.dialects),
        "comment": view.comment,
        "options": dict(view.options),
    }


def parse_view(body: object, what: str) -> StoredView:
    """Return the view that a JSON object describes.

    Args:
        what: first words of the error message.

    Raises:
        FormatError: it is no view.
    """
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        raise FormatError(f"{what}: its definition has no query; make the view again")
    comment = body.get("comment")
    try:
        fields = tuple(decode_field(each) for each in body.get("fields") or ())
    except InvalidSchemaError as error:
        raise FormatError(f"{what}: its definition is damaged ({error}); make the view again") from error
    return StoredView(
        fields=fields,
        query=body["query"],
        dialects=_pairs(body.get("dialects")),
        comment=None if comment is None else str(comment),
        options=_pairs(body.get("options")),
    )


def encode_view(view: StoredView) -> bytes:
    """Return the bytes of a view's file."""
    return json.dumps(view_body(view), indent=2, ensure_ascii=False).encode()


def decode_view(data: bytes, what: str) -> StoredView:
    """Return the view of a file. Raises ``FormatError``."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise FormatError(f"{what}: its file is no JSON ({error}); make the view again") from error
    return parse_view(body, what)


def _pairs(found: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in (found or {}).items())

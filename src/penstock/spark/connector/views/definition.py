"""Convert Spark's views to stored ones and back.

Paimon's form of a view has no place for what Spark keeps in addition to the text, so this is in options that begin with
``spark.view.``. A view without them, made by another engine, is in the catalog and database where it is stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from penstock.catalog.stored_view import View, view_fields
from penstock.format.text.names import quoted
from penstock.spark.connector.gateway import schema_of
from penstock.spark.types import from_spark_schema, to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.spark.connector.gateway import Bridge, JavaObject

_DIALECT: Final = "spark"
_OWN: Final = "spark.view."
_CATALOG: Final = f"{_OWN}catalog"
_NAMESPACE: Final = f"{_OWN}namespace"
_COLUMNS: Final = f"{_OWN}query-columns"
_MODE: Final = f"{_OWN}schema-mode"
_CONFIG: Final = f"{_OWN}config."
_COMMENT: Final = "comment"
# Spark's own properties, without meaning for a stored view.
_IGNORED: Final = frozenset({"owner", "table_type", _COMMENT})


def stored_view(view: JavaObject, catalog: str, before: View | None = None) -> View:
    """Return the stored form of a view of Spark's.

    Args:
        view: a ``View``.
        catalog: name of the catalog that will have it; in the stored form this catalog has no name, so that the view
            also works where it is called something else.
        before: the view that it replaces; if the text stays, those for other engines stay too.
    """
    text = str(view.queryText())
    properties = _pairs(view.properties())
    options = {key: value for key, value in properties.items() if key not in _IGNORED and not key.startswith(_OWN)}
    options |= {f"{_CONFIG}{key}": value for key, value in _pairs(view.sqlConfigs()).items()}
    current = view.currentCatalog()
    if current is not None and current != catalog:
        options[_CATALOG] = str(current)
    options[_NAMESPACE] = _texts(view.currentNamespace())
    options[_COLUMNS] = _texts(view.queryColumnNames())
    if view.schemaMode() is not None:
        options[_MODE] = str(view.schemaMode())
    others = before.dialects if before is not None and before.text_for(_DIALECT) == text else ()
    return View(
        fields=view_fields(from_spark_schema(schema_of(view.schema()))),
        query=text,
        dialects=tuple({**dict(others), _DIALECT: text}.items()),
        comment=properties.get(_COMMENT),
        options=tuple(options.items()),
    )


def spark_view(bridge: Bridge, view: View, catalog: str, database: str) -> JavaObject:
    """Return the ``View`` for a stored one.

    Args:
        catalog: name of the catalog that has it.
        database: where it is stored.
    """
    options = dict(view.options)
    text = view.text_for(_DIALECT)
    names = json.loads(options.get(_COLUMNS, "[]"))
    if not names:  # by another engine, whose columns go by their places
        names = [field.name for field in view.fields]
        text = f"SELECT * FROM ({text}) AS v({', '.join(map(quoted, names))})"  # noqa: S608 - the text of a query is what a view is
    shown = {key: value for key, value in options.items() if not key.startswith(_OWN)}
    configs = {key.removeprefix(_CONFIG): value for key, value in options.items() if key.startswith(_CONFIG)}
    made = bridge.connector("catalog.View$Builder")()
    made.withSchema(bridge.schema(to_spark_schema(view.fields)))
    made.withProperties(bridge.java_map(shown))
    made.withQueryText(text)
    made.withCurrentCatalog(options.get(_CATALOG, catalog))
    made.withCurrentNamespace(bridge.strings(json.loads(options.get(_NAMESPACE, json.dumps([database])))))
    made.withQueryColumnNames(bridge.strings(names))
    made.withSqlConfigs(bridge.java_map(configs))
    if view.comment is not None:
        made.withComment(view.comment)
    if _MODE in options:
        made.withSchemaMode(options[_MODE])
    return made.build()


def _pairs(found: JavaObject) -> Mapping[str, str]:
    return {} if found is None else {str(key): str(found.get(key)) for key in found.keySet()}


def _texts(found: JavaObject) -> str:
    return json.dumps([str(each) for each in found or ()], ensure_ascii=False)

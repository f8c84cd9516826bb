"""Convert Spark's views to stored views and back.

Paimon's view format has no fields for what Spark stores in addition to the text, so options that begin with
``spark.view.`` hold it. The names of a view without these options, created by another engine, are resolved in the
catalog and database where it is stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from penstock.catalog.stored_view import COLUMNS, NAMESPACE, OWN, SPARK, View, view_fields
from penstock.catalog.view_names import CATALOG, STORED_IN, view_names
from penstock.format.text.names import quoted
from penstock.spark.connector.gateway import schema_of
from penstock.spark.types import from_spark_schema, to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject

_MODE: Final = f"{OWN}schema-mode"
_CONFIG: Final = f"{OWN}config."
_EVOLVING: Final = frozenset({"EVOLUTION", "TYPE EVOLUTION"})
_COMMENT: Final = "comment"
# Spark's own properties, without meaning for a stored view.
_IGNORED: Final = frozenset({"owner", "table_type", _COMMENT})


def stored_view(view: JavaObject, catalog: str, before: View | None = None) -> View:
    """Return the stored form of a Spark view.

    Args:
        view: a ``View``.
        catalog: name of the catalog that will contain it; the stored form omits this name, so that the view also works
            if the catalog is attached under another name.
        before: the view that it replaces; if the text is unchanged, the texts for other engines are kept too.
    """
    text = str(view.queryText())
    properties = _pairs(view.properties())
    options = {key: value for key, value in properties.items() if key not in _IGNORED and not key.startswith(OWN)}
    options |= {f"{_CONFIG}{key}": value for key, value in _pairs(view.sqlConfigs()).items()}
    current = view.currentCatalog()
    if current is not None and current != catalog:
        options[CATALOG] = str(current)
    is_same = before is not None and before.text_for(SPARK) == text
    options[STORED_IN] = catalog if before is None or not is_same else dict(before.options).get(STORED_IN, catalog)
    options[NAMESPACE] = _texts(view.currentNamespace())
    options[COLUMNS] = _texts(view.queryColumnNames())
    if view.schemaMode() is not None:
        options[_MODE] = str(view.schemaMode())
    others = before.dialects if before is not None and is_same else ()
    return View(
        fields=view_fields(from_spark_schema(schema_of(view.schema()))),
        query=text,
        dialects=tuple({**dict(others), SPARK: text}.items()),
        comment=properties.get(_COMMENT),
        options=tuple(options.items()),
    )


def is_evolving(view: View) -> bool:
    """Whether the columns of a view, or their types, are those that its query has at the time of a read."""
    return dict(view.options).get(_MODE) in _EVOLVING


def spark_view(bridge: Bridge, view: View, catalog: str, database: str, schema: JavaObject | None = None) -> JavaObject:
    """Return the ``View`` for a stored view.

    Args:
        catalog: name of the catalog that has it.
        database: where it is stored.
        schema: its columns, if they are not those that are stored.
    """
    options = dict(view.options)
    text = view.text_for(SPARK)
    meant = view_names(view, database)
    names: Sequence[str] = meant.columns
    if COLUMNS not in options:  # created by another engine, with columns matched by position
        names = [field.name for field in view.fields]
        text = f"SELECT * FROM ({text}) AS v({', '.join(map(quoted, names))})"  # noqa: S608 - a view is the text of a query
    shown = {key: value for key, value in options.items() if not key.startswith(OWN)}
    configs = {key.removeprefix(_CONFIG): value for key, value in options.items() if key.startswith(_CONFIG)}
    made = bridge.connector("catalog.View$Builder")()
    made.withSchema(bridge.schema(to_spark_schema(view.fields)) if schema is None else schema)
    made.withProperties(bridge.java_map(shown))
    made.withQueryText(text)
    made.withCurrentCatalog(meant.catalog or catalog)
    made.withCurrentNamespace(bridge.strings(meant.namespace))
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

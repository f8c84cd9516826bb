"""What of Spark's insides the connector relies on, in the version that is installed."""

from __future__ import annotations

import gc
import inspect
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

import penstock
from penstock import Catalog, InvalidOptionError, UnsupportedFeatureError
from penstock.spark.connector import catalog as catalog_module
from penstock.spark.connector import catalog_class, local_rows, procedures, scan, scan_builder, table, write
from penstock.spark.connector import frame as batch_frames
from penstock.spark.connector import staging as staged_table
from penstock.spark.connector.actions import dynamic_overwrite
from penstock.spark.connector.changes import group_scan, operation, replace_files
from penstock.spark.connector.gateway import PRIVATE, open_bridge
from penstock.spark.connector.proxy import Proxy
from penstock.spark.connector.stream import frame, micro_batches, table_write
from penstock.spark.versions.facts import PYTHON_CLASSES, PYTHON_SOURCES, class_here, interfaces_here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

PROXIES = sorted(
    {
        member
        for module in (
            catalog_module,
            catalog_class,
            scan,
            scan_builder,
            staged_table,
            table,
            table_write,
            write,
            local_rows,
            procedures,
            micro_batches,
            dynamic_overwrite,
            group_scan,
            operation,
            replace_files,
            frame,
            batch_frames,
        )
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Proxy) and member.interfaces
    },
    key=lambda each: each.__name__,
)


def test_every_private_class_is_there(spark: SparkSession) -> None:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in map(class_here, PRIVATE.values()):
        if PYTHON_SOURCES.is_here or not name.startswith(PYTHON_CLASSES):
            assert spark._jvm.java.lang.Class.forName(name, False, loader).getName() == name
        else:
            with pytest.raises(Py4JJavaError, match="ClassNotFoundException"):
                spark._jvm.java.lang.Class.forName(name, False, loader)


def takes(method: Callable[..., Any] | None, count: int) -> bool:
    """Whether a method can be called with this number of arguments, of all the overloads of its name."""
    try:
        return method is not None and inspect.signature(method).bind(*range(count + 1)) is not None
    except TypeError:
        return False


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda each: each.__name__)
def test_a_proxy_answers_every_method_that_has_no_default(spark: SparkSession, proxy: type[Proxy]) -> None:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    modifier = spark._jvm.java.lang.reflect.Modifier
    missing = {
        method.getName()
        for name in interfaces_here(proxy.interfaces)
        for method in spark._jvm.java.lang.Class.forName(name, False, loader).getMethods()
        if not modifier.isStatic(method.getModifiers())
        and (method.getName() in proxy.methods or not method.isDefault())
        and not takes(getattr(proxy, method.getName(), None), method.getParameterCount())
    }
    assert missing == proxy.driver_methods


def test_a_session_of_spark_connect_is_refused_with_what_works_there(tmp_path: Path) -> None:
    remote = cast("Any", SimpleNamespace())
    with pytest.raises(UnsupportedFeatureError, match="Spark Connect"):
        open_bridge(remote)
    with pytest.raises(InvalidOptionError, match="expected a SparkSession"):
        penstock.attach(remote, tmp_path)


def test_a_name_that_sql_cannot_say_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be the name of a catalog"):
        Catalog(tmp_path).attach(spark, "a-b")


class PromptQueue(deque[Any]):
    """Releases objects of the JVM at once, as the thread of Py4J does if it happens to be awake."""

    def appendleft(self, item: Any) -> None:
        if isinstance(item, tuple):
            client, target = item
            client.garbage_collect_object(target, enqueue=False)
        else:
            super().appendleft(item)


def test_answers_reach_the_jvm_before_py4j_releases_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("d")
    client = cast("Any", spark._jvm)._gateway_client
    call = ClientServerConnection._call_proxy

    def collected_before_it_is_sent(*arguments: Any) -> Any:
        answer = call(*arguments)
        gc.collect(1)
        return answer

    monkeypatch.setattr(client, "finalizer_deque", PromptQueue(client.finalizer_deque))
    monkeypatch.setattr(ClientServerConnection, "_call_proxy", collected_before_it_is_sent)
    spark.sql("CREATE TABLE penstock.d.t (n INT, p INT) PARTITIONED BY (p)")
    for _ in range(2):
        spark.sql("INSERT INTO penstock.d.t VALUES (1, 1), (2, 2)")
    spark.sql("UPDATE penstock.d.t SET n = 3 WHERE n = 2")
    assert [row.n for row in spark.sql("SELECT n FROM penstock.d.t ORDER BY n").collect()] == [1, 1, 3, 3]
    catalog.create_table("d.u", "n INT, p INT")
    stream = spark.readStream.option("scan.mode", "earliest").table("penstock.d.t")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    for _ in range(2):
        assert writer.toTable("penstock.d.u").awaitTermination(60)
        assert spark.table("penstock.d.u").count() == 4
    spark.sql("DROP TABLE penstock.d.t")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("penstock.d.t")

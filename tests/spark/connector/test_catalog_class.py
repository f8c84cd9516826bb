"""The class that Spark loads as a catalog, in the sessions of one application."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import IllegalArgumentException
from tests.quick_spark import quick_environment

import penstock
from penstock import Catalog, InvalidOptionError
from penstock.spark.connector.catalog import WarehouseCatalog
from penstock.spark.connector.catalog_class import SETTINGS, catalog_class
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.versions.facts import HAS_CLASSIC, PROCEDURES, interfaces_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS = "penstock.Catalog"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """Return a session of its own, in which a test may set what it likes."""
    return spark.newSession()


def warehouse(path: Path, *rows: int) -> Catalog:
    """Return a warehouse with the table ``d.t`` of these rows."""
    made = Catalog(path, {"penstock.durable": "false"})
    made.create_database("d")
    made.create_table("d.t", "n INT").append([{"n": row} for row in rows])
    return made


def rows_of(session: SparkSession, name: str) -> list[int]:
    return sorted(row.n for row in session.table(f"{name}.d.t").collect())


def test_sessions_that_begin_later_have_an_attached_catalog(session: SparkSession, tmp_path: Path) -> None:
    catalog = penstock.attach(session, warehouse(tmp_path / "w", 1, 2), "for_later")
    new, clone = session.newSession(), session._jsparkSession.cloneSession()
    assert rows_of(new, "for_later") == [1, 2]
    if PROCEDURES.is_here:
        assert [row.result for row in new.sql("CALL for_later.sys.create_tag('d.t', 'one')").collect()] == ["Success"]
    assert clone.sql("SELECT n FROM for_later.d.t").count() == 2
    new.sql("INSERT INTO for_later.d.t VALUES (3)")
    assert rows_of(session, "for_later") == [1, 2, 3]
    assert catalog.load_table("d.t").snapshots().num_rows == 2


def test_a_session_that_had_begun_before_has_it_when_it_attaches(spark: SparkSession, tmp_path: Path) -> None:
    early, other = spark.newSession(), spark.newSession()
    early.sql("SELECT 1")
    catalog = penstock.attach(other, warehouse(tmp_path / "w", 1), "of_other")
    with pytest.raises(Exception, match="of_other"):
        early.table("of_other.d.t")
    penstock.attach(early, catalog, "of_other")
    assert rows_of(early, "of_other") == [1]
    # Both sessions mean the same warehouse.
    assert rows_of(spark.newSession(), "of_other") == [1]


def test_two_warehouses_under_one_name_are_never_confused(spark: SparkSession, tmp_path: Path) -> None:
    sessions = [spark.newSession(), spark.newSession()]
    for number, session in enumerate(sessions):
        penstock.attach(session, warehouse(tmp_path / str(number), number), "twice")
    assert [rows_of(session, "twice") for session in sessions] == [[0], [1]]
    assert sessions[0]._jsparkSession.cloneSession().table("twice.d.t").first().get(0) == 0
    with pytest.raises(IllegalArgumentException, match=r"different warehouses .* penstock\.attach\(session, warehouse"):
        rows_of(spark.newSession(), "twice")


def test_a_name_in_use_gets_another_warehouse(session: SparkSession, tmp_path: Path) -> None:
    penstock.attach(session, warehouse(tmp_path / "a", 1), "moved")
    penstock.attach(session, warehouse(tmp_path / "b", 7), "kept")
    session.sql("USE moved.d")
    assert [session.table("t").count(), rows_of(session, "moved")] == [1, [1]]
    penstock.attach(session, warehouse(tmp_path / "c", 2, 3), "moved")
    assert [session.table("t").count(), rows_of(session, "moved"), rows_of(session, "kept")] == [2, [2, 3], [7]]
    assert rows_of(session.newSession(), "moved") == [2, 3]
    assert "moved" in [row.catalog for row in session.sql("SHOW CATALOGS").collect()]


def test_the_default_catalog_may_be_one_of_ours(session: SparkSession, tmp_path: Path) -> None:
    penstock.attach(session, warehouse(tmp_path / "w", 4), "by_default")
    new = session.newSession()
    new.conf.set("spark.sql.defaultCatalog", "by_default")
    assert new.sql("SELECT n FROM d.t").first() == (4,)
    new.sql("CREATE TABLE d.copy AS SELECT n FROM d.t")
    assert [row.tableName for row in new.sql("SHOW TABLES IN d").collect()] == ["copy", "t"]
    assert new.sql("SELECT current_catalog()").first() == ("by_default",)


def test_a_session_cannot_name_a_warehouse_of_its_choice(session: SparkSession, tmp_path: Path) -> None:
    warehouse(tmp_path / "w", 1)
    penstock.attach(session, warehouse(tmp_path / "v", 1), "permitted")
    for name, options in {
        "foreign": {"warehouse": str(tmp_path / "w")},
        "permitted": {"warehouse": str(tmp_path / "w"), "penstock.attached": "somebody"},
    }.items():
        client = session.newSession()
        client.conf.set(f"{SETTINGS}{name}", CLASS)
        for key, value in options.items():
            client.conf.set(f"{SETTINGS}{name}.{key}", value)
        with pytest.raises(IllegalArgumentException, match=rf"catalog '{name}'.*penstock\.attach\(") as caught:
            rows_of(client, name)
        assert "\n" not in str(caught.value)


def test_the_driver_lets_all_sessions_have_the_catalogs_of_a_sessions_settings(
    session: SparkSession, tmp_path: Path
) -> None:
    warehouse(tmp_path / "w", 5)
    for key, value in {"": CLASS, ".warehouse": str(tmp_path / "w"), ".table-default.bucket": "-1"}.items():
        session.conf.set(f"{SETTINGS}served{key}", value)
    with pytest.raises(IllegalArgumentException, match="not one of this application"):
        rows_of(session, "served")
    assert "served" in penstock.serve(session)
    assert rows_of(session, "served") == [5]
    client = session.newSession()
    assert client.sql("CALL served.sys.create_tag('d.t', 'one')").count() == 1
    changed = session.newSession()
    changed.conf.set(f"{SETTINGS}served.warehouse", str(tmp_path))
    with pytest.raises(IllegalArgumentException, match="another warehouse than the application") as caught:
        rows_of(changed, "served")
    assert str(tmp_path) not in str(caught.value)


def test_a_catalog_without_a_warehouse_says_which_setting_is_missing(session: SparkSession) -> None:
    session.conf.set(f"{SETTINGS}nowhere", CLASS)
    penstock.serve(session)
    with pytest.raises(IllegalArgumentException, match=r"set spark\.sql\.catalog\.nowhere\.warehouse"):
        session.sql("SHOW NAMESPACES IN nowhere")


def test_the_name_of_a_catalog_of_another_kind_is_refused(session: SparkSession, tmp_path: Path) -> None:
    kind = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    session.conf.set(f"{SETTINGS}theirs", kind)
    session.conf.set(f"{SETTINGS}theirs.url", "jdbc:derby:memory:theirs;create=true")
    with pytest.raises(InvalidOptionError, match=f"catalog 'theirs' of this session is {kind}"):
        penstock.attach(session, tmp_path, "theirs")
    session.sql("SHOW NAMESPACES IN theirs")
    session.conf.unset(f"{SETTINGS}theirs")
    with pytest.raises(InvalidOptionError, match="catalog 'theirs' of this session is another one"):
        penstock.attach(session, tmp_path, "theirs")


def test_many_threads_may_use_a_catalog_first(session: SparkSession, tmp_path: Path) -> None:
    penstock.attach(session, warehouse(tmp_path / "w", 1, 2, 3), "raced")
    new = session.newSession()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: len(rows_of(new, "raced")), range(16))) == [3] * 16


def test_a_jvm_that_does_not_open_its_packages_gets_the_class_in_a_package_of_spark(
    session: SparkSession, tmp_path: Path
) -> None:
    penstock.attach(session, warehouse(tmp_path / "w", 6), "beside")
    bridge = open_bridge(session)
    neighbour = bridge.java_class("org.apache.spark.sql.connector.catalog.CatalogPlugin")
    kind = bridge._catalog_class.definedBeside(
        neighbour, "PenstockCatalog", bridge.java_list(interfaces_here(WarehouseCatalog.interfaces))
    )
    maker = bridge.java_class(CLASS).getField("maker")
    kind.getField("maker").set(None, maker.get(None))
    new = session.newSession()
    new.conf.set(f"{SETTINGS}beside", str(kind.getName()))
    assert str(kind.getName()) != catalog_class(bridge).name
    assert rows_of(new, "beside") == [6]


THREADS = """
import org.apache.spark.sql.classic.SparkSession;

public class Threads implements Runnable {
    private SparkSession session;
    private String text;
    private volatile Throwable thrown;

    /** Run a statement so many times, each on a thread of its own that ends, "beside" of them at once. */
    public void run(SparkSession session, String text, int count, int beside) throws Throwable {
        this.session = session;
        this.text = text;
        for (int done = 0; done < count; done += beside) {
            Thread[] threads = new Thread[beside];
            for (int i = 0; i < beside; i++) {
                threads[i] = new Thread(this);
                threads[i].start();
            }
            for (int i = 0; i < beside; i++) {
                threads[i].join();
            }
        }
        if (thrown != null) {
            throw thrown;
        }
    }

    public void run() {
        try {
            session.sql(text).collect();
        } catch (Throwable error) {
            thrown = error;
        }
    }
}
"""


def test_hundreds_of_threads_of_the_jvm_need_few_threads_of_python(session: SparkSession, tmp_path: Path) -> None:
    penstock.attach(session, warehouse(tmp_path / "w", 1, 2), "by_threads")
    compiler = open_bridge(session).private("Compiler")()
    compiler.cook(THREADS if HAS_CLASSIC else THREADS.replace("spark.sql.classic.", "spark.sql."))
    threads = compiler.getClassLoader().loadClass("Threads").newInstance()
    text = "SELECT count(*) FROM by_threads.d.t WHERE n > 0"
    threads.run(session._jsparkSession, text, 8, 4)
    before = threading.active_count()
    threads.run(session._jsparkSession, text, 80, 4)
    # As many as call at once, and those that end later than their successors begin.
    assert threading.active_count() <= before + 4
    threads.run(session._jsparkSession, "INSERT INTO by_threads.d.t VALUES (3)", 4, 2)
    assert rows_of(session, "by_threads") == [1, 2, 3, 3, 3, 3]


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_settings_of_the_application_are_catalogs_of_all_its_sessions(tmp_path: Path) -> None:
    script = Path(__file__).with_name("settings_script.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, **quick_environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "done"
    assert "Traceback" not in done.stderr

"""Spark Connect, the Thrift server and spark-sql, as commands; clients are other processes, without Penstock."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.quick_spark import quick_settings
from tests.spark.needs import needs
from tests.spark.server_commands import COMMAND, PAGE, arguments, environment, of_page, running
from tests.standalone_cluster import SPARK_HOME

from penstock import Catalog
from penstock.spark.versions.facts import CONNECT_SERVER, PROCEDURES, PYTHON_SOURCES

CLIENT_PYTHON = Path(__file__).parents[2] / ".venv-dbt" / "bin" / "python"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with the warehouse ``w``, which has the table of the page."""
    catalog = Catalog(tmp_path / "w", {"penstock.durable": "false"})
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", "id BIGINT, item STRING, dt STRING", partition_by=["dt"])
    orders.append([{"id": 1, "item": "pen", "dt": "d1"}, {"id": 3, "item": None, "dt": "d2"}])
    return tmp_path


def client(script: str, folder: Path, *more: str, python: str | Path = sys.executable) -> str:
    """Run a client that cannot import Penstock; return what it has printed."""
    # Editable installations are found by finders, which the path does not show.
    hidden = "import sys; sys.modules['penstock'] = None\n"
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", hidden + script, *more],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


CONNECT = """
import io, json, os, sys, zipfile
from contextlib import redirect_stdout
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

address, root = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()

def rows(text, session=spark):
    return [list(row) for row in session.sql(text).collect()]

def plan(text):
    shown = io.StringIO()
    with redirect_stdout(shown):
        spark.sql(text).explain()
    return shown.getvalue()

def error(text, session=spark):
    try:
        return rows(text, session)
    except PySparkException as error:
        return str(error)

found = {"tables": rows("SHOW TABLES IN penstock.shop")}
rows("CREATE TABLE penstock.shop.t (id BIGINT, day STRING, v DOUBLE) PARTITIONED BY (day)")
rows("INSERT INTO penstock.shop.t SELECT id, concat('d', id % 4), id / 2D FROM range(400)")
found["pruned"] = rows("SELECT count(*) FROM penstock.shop.t WHERE day = 'd1' AND id > 10")
found["plan"] = plan("SELECT id FROM penstock.shop.t WHERE day = 'd1' AND id > 10")
source = "(SELECT id, 'd9' AS day, 5D AS v FROM range(395, 405)) s"
changes = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
rows(f"MERGE INTO penstock.shop.t t USING {source} ON t.id = s.id {changes}")
found["merged"] = rows("SELECT count(*), sum(CASE WHEN v = 5 THEN 1 END) FROM penstock.shop.t")
found["call"] = rows("CALL penstock.sys.create_tag('shop.t', 'now')")
found["travel"] = rows("SELECT count(*) FROM penstock.shop.t VERSION AS OF 1")
rows("CREATE TABLE penstock.shop.copy (id BIGINT, day STRING)")

def copy():
    stream = spark.readStream.option("scan.mode", "earliest").table("penstock.shop.t").select("id", "day")
    query = stream.writeStream.option("checkpointLocation", f"{root}/copy").trigger(availableNow=True)
    query = query.toTable("penstock.shop.copy")
    query.awaitTermination(120)
    return rows("SELECT count(*) FROM penstock.shop.copy")

found["copied"] = copy()
rows("CREATE TABLE penstock.shop.often (id BIGINT, day STRING)")

def start():
    options = {"scan.mode": "earliest", "consumer-id": "often"}
    stream = spark.readStream.options(**options).table("penstock.shop.t").select("id", "day")
    query = stream.writeStream.option("checkpointLocation", f"{root}/often").trigger(processingTime="0 seconds")
    return query.toTable("penstock.shop.often")

query = start()
query.processAllAvailable()
found["progress"] = sum(each.numInputRows for each in query.recentProgress)
for _ in range(5):  # its last run may still hold the lease
    query.stop()
    query = start()
query.processAllAvailable()
query.stop()
found["often"] = rows("SELECT count(*) FROM penstock.shop.often")
found["failed"] = str(query.exception())
found["consumer"] = rows("SELECT consumer_id, next_snapshot_id > 1 FROM penstock.shop.`t$consumers`")

def batch(frame, number):
    frame.sparkSession.sql("INSERT INTO penstock.shop.copy SELECT -1, 'batch'")

stream = spark.readStream.option("scan.mode", "earliest").table("penstock.shop.t").writeStream.foreachBatch(batch)
stream.option("checkpointLocation", f"{root}/batches").trigger(availableNow=True).start().awaitTermination(120)
found["batches"] = rows("SELECT count(*) FROM penstock.shop.copy WHERE id = -1")
other = SparkSession.builder.remote(address).create()
found["other session"] = rows("SELECT count(*) FROM penstock.shop.t", other)
other.conf.set("spark.sql.catalog.mine", "penstock.Catalog")
other.conf.set("spark.sql.catalog.mine.warehouse", root)
found["own warehouse"] = error("SHOW NAMESPACES IN mine", other)
found["missing"] = error("SELECT * FROM penstock.shop.nope")
# Executors read files of two schemas by a class of Penstock's, also for a session that has jars of its own.
before = rows("SELECT sum(v) FROM penstock.shop.t")
rows("ALTER TABLE penstock.shop.t RENAME COLUMN v TO w")
rows("INSERT INTO penstock.shop.t VALUES (1000, 'd1', NULL)")
found["two schemas"] = "columns by the names in files of 2 schemas" in plan("SELECT sum(w) FROM penstock.shop.t")
found["renamed"] = rows("SELECT sum(w) FROM penstock.shop.t") == before
with zipfile.ZipFile(f"{root}/own.jar", "w") as jar:
    jar.writestr("own.txt", "")
other.addArtifacts(f"{root}/own.jar")
found["renamed, own jar"] = rows("SELECT sum(w) FROM penstock.shop.t", other) == before
print(json.dumps(found), flush=True)
# Threads of PySpark that watch streaming queries keep a client from ending.
os._exit(0)
"""


@needs(CONNECT_SERVER)
def test_clients_of_spark_connect_use_the_warehouse(folder: Path) -> None:
    pytest.importorskip("grpc")
    command, example = of_page("Spark Connect")
    with running(command, folder, signal.SIGTERM) as port:
        found = json.loads(client(CONNECT, folder, f"sc://127.0.0.1:{port}", str(folder)).splitlines()[-1])
        shown = client(example.replace("15002", str(port)), folder)
    assert found["tables"] == [["shop", "orders", False]]
    assert found["pruned"] == [[97]]
    read, there = map(int, re.findall(r"(\d+) of (\d+) files", found["plan"])[0])
    assert read * 4 == there
    # One of 400 rows had this value before.
    assert found["merged"] == [[405, 11]]
    assert [found["call"], found["travel"]] == [[["Success"]], [[400]]]
    # A stream delivers appended rows.
    assert [found["copied"], found["other session"]] == [[[400]], [[405]]]
    assert [found["often"], found["failed"], found["progress"]] == [[[400]], "None", 400]
    assert found["consumer"] == [["often", True]]
    assert found["batches"] == [[1]]
    assert "catalog 'mine' is not one of this application" in found["own warehouse"]
    assert "TABLE_OR_VIEW_NOT_FOUND" in found["missing"]
    assert [found["two schemas"], found["renamed"], found["renamed, own jar"]] == [True, True, True]
    assert shown.splitlines()[0] == "2"
    assert "shop.orders" in shown


def test_clients_of_the_thrift_server_use_the_warehouse(folder: Path) -> None:
    if not CLIENT_PYTHON.exists():
        pytest.skip("PyHive is not installed: make test-dbt installs it")
    calls = ["CALL penstock.sys.create_tag('shop.orders', 'now')"] if PROCEDURES.is_here else []
    command, example = of_page("JDBC and ODBC")
    more = """
for text in (
    "INSERT INTO penstock.shop.orders VALUES (4, 'cap', 'd3')",
    "MERGE INTO penstock.shop.orders t USING (SELECT 4L AS id, 'hat' AS item, 'd3' AS dt) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET item = s.item",
):
    cursor.execute(text)
for text in (
    "SELECT item FROM penstock.shop.orders WHERE dt = 'd3'",
    *CALLS,
    "SHOW TABLES IN penstock.shop",
):
    cursor.execute(text)
    print(cursor.fetchall())
other = hive.connect("127.0.0.1", port=PORT, username="you").cursor()
other.execute("SELECT count(*) FROM penstock.shop.orders")
print(other.fetchall())
"""
    with running(command, folder, signal.SIGINT) as port:
        script = (example + more).replace("10000", str(port)).replace("PORT", str(port)).replace("CALLS", str(calls))
        lines = client(script, folder, python=CLIENT_PYTHON).splitlines()
    called = ["[('Success',)]"] * len(calls)
    assert lines == ["[(None,)]", "[('hat',)]", *called, "[('shop', 'orders', False)]", "[(3,)]"]


METADATA = """
from TCLIService import ttypes

connection = hive.connect("127.0.0.1", port=PORT, username="me")

def rows(name, **given):
    request = getattr(ttypes, f"T{name}Req")(sessionHandle=connection.sessionHandle, **given)
    handle = getattr(connection.client, name)(request).operationHandle
    fetched = connection.client.FetchResults(ttypes.TFetchResultsReq(operationHandle=handle, orientation=0, maxRows=99))
    columns = [next(each for each in vars(column).values() if each).values for column in fetched.results.columns]
    return list(map(list, zip(*columns)))

print(rows("GetSchemas"))
print(rows("GetSchemas", schemaName="sh_p"))
print([row[:4] for row in rows("GetTables", schemaName="shop", tableName="%")])
print([row[:4] for row in rows("GetTables", schemaName="%", tableName="o%", tableTypes=["VIEW"])])
print([row[2:6] for row in rows("GetColumns", schemaName="%", tableName="orders", columnName="i%")])
connection.cursor().execute("USE spark_catalog")
print([row[:4] for row in rows("GetTables", catalogName="penstock", schemaName="shop", tableName="orders")])
print(rows("GetTables", schemaName="%", tableName="%"))
"""


def test_metadata_calls_of_the_thrift_server_name_schemas_tables_and_columns(folder: Path) -> None:
    if not CLIENT_PYTHON.exists():
        pytest.skip("PyHive is not installed: make test-dbt installs it")
    Catalog(folder / "w").create_database("default")
    command, example = of_page("JDBC and ODBC", example=1)
    with running(f"{command} --conf spark.sql.defaultCatalog=penstock", folder, signal.SIGTERM) as port:
        script = example.replace("10000", str(port)) + "from pyhive import hive" + METADATA.replace("PORT", str(port))
        lines = client(script, folder, python=CLIENT_PYTHON).splitlines()
    table = ["penstock", "shop", "orders", "TABLE"]
    assert lines == [
        *("[(None,)]", "[['default', 'penstock'], ['shop', 'penstock']]", "[['shop', 'penstock']]"),
        *(f"[{table}]", "[]", "[['orders', 'id', -5, 'BIGINT'], ['orders', 'item', 12, 'STRING']]"),
        *(f"[{table}]", "[]"),
    ]


def beeline(address: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    statements = ("SELECT id, item FROM penstock.shop.orders WHERE dt = 'd1'", *more)
    return subprocess.run(
        [
            str(Path(sys.executable).with_name("beeline")),
            *("-u", address, "-n", "me", "--outputformat=csv2", "--silent=true"),
            *(word for statement in statements for word in ("-e", statement)),
        ],
        env={**environment(), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_thrift_server_speaks_tls(folder: Path) -> None:
    if shutil.which("keytool") is None:
        pytest.skip("Java has no keytool here")
    keys = folder / "keys.p12"
    given = ("-alias", "server", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1,dns:localhost")
    where = ("-keystore", str(keys), "-storepass", "changeit", "-storetype", "PKCS12")
    subprocess.run(["keytool", "-genkeypair", *given, *where], check=True, capture_output=True)
    prefix = "spark.hadoop.hive.server2"
    settings = {f"{prefix}.use.SSL": "true", f"{prefix}.keystore.path": keys, f"{prefix}.keystore.password": "changeit"}
    command, _ = of_page("JDBC and ODBC")
    command += "".join(f" --conf {key}={value}" for key, value in settings.items())
    with running(command, folder, signal.SIGTERM) as port:
        address = f"jdbc:hive2://127.0.0.1:{port}/"
        done = beeline(f"{address};ssl=true;sslTrustStore={keys};trustStorePassword=changeit", folder)
        plain = beeline(address, folder)
    assert "1,pen" in done.stdout.splitlines(), done.stderr[-3000:]
    assert "1,pen" not in plain.stdout


def test_beeline_uses_the_warehouse(folder: Path) -> None:
    command, _ = of_page("JDBC and ODBC")
    with running(command, folder, signal.SIGTERM) as port:
        done = beeline(f"jdbc:hive2://127.0.0.1:{port}", folder, "USE penstock", "!tables")
    lines = done.stdout.splitlines()
    assert lines[lines.index("1,pen") - 1].endswith("id,item"), (done.stdout, done.stderr[-3000:])
    assert lines[-1].startswith("penstock,shop,orders,TABLE,"), done.stdout


def test_spark_sql_uses_the_warehouse(folder: Path) -> None:
    command, _ = of_page("The SQL prompt of Spark")
    done = subprocess.run(
        arguments(command, folder / "w"), cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "2", done.stderr[-3000:]
    assert done.returncode == 0
    script = folder / "script.sql"
    script.write_text("CREATE TABLE penstock.shop.t AS SELECT 1 AS a;\nSELECT a FROM penstock.shop.t;\nSELECT nope;\n")
    words = ["--warehouse", str(folder / "w"), "spark-sql", "--file", str(script), "--spark", "local[2]"]
    failed = subprocess.run(
        [COMMAND, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert failed.returncode != 0
    assert failed.stdout.splitlines()[-1] == "1"
    assert "UNRESOLVED_COLUMN" in failed.stderr
    assert "Traceback" not in failed.stderr


@needs(PYTHON_SOURCES)
def test_spark_sql_as_it_is_uses_a_view(folder: Path) -> None:
    section = PAGE.split("## A view in Spark as it is\n")[1].split("\n## ")[0]
    (statements,) = re.findall(r"\n\n((?:    [^\n]*\n)+)", section)
    script = folder / "view.sql"
    script.write_text(textwrap.dedent(statements).replace("/data/warehouse", str(folder / "w")))
    settings = [part for key, value in quick_settings().items() for part in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-sql"), "--master", "local[2]", *settings, "-f", str(script)],
        env={**environment(), "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["2"], done.stderr[-3000:]


def test_a_server_without_a_catalog_ends_with_one_line(folder: Path) -> None:
    words = [COMMAND, "connect-server", "--spark", "local[1]", "--conf", "spark.ui.enabled=false"]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: no catalog is given: give --warehouse PATH")


@pytest.mark.parametrize("server", [pytest.param("connect-server", marks=needs(CONNECT_SERVER)), "thrift-server"])
def test_a_server_whose_port_is_taken_ends_and_says_so(server: str, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = f"penstock -w /data/warehouse {server} --spark local[1] --port {port}"
        words = arguments(command, folder / "w")
        done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert "could not start at " in last
    assert str(port) in last
    assert re.search("in use|Failed to bind", last)

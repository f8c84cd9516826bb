"""Settings under which a Spark session that lives for seconds, in a process of its own, costs least."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from tests.class_archive import archive_options

from penstock.spark.versions.facts import class_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The usual one starts readlink and chmod for each file where Hadoop's native library is missing.
CHECKPOINT_FILES: Final = class_here(
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# The optimising compiler of a JVM costs more processor time here than it saves: with it the same 46 Spark tests took
# 60 s of the processor, without it 35 s.
JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    # The 48 MB of this level fill up within minutes: methods are thrown out and compiled again, 3.5 times on average.
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC",
    # A young generation that rarely fills up, and no whole collection each time that more classes are loaded.
    "-Xmn512m",
    "-XX:MetaspaceSize=192m",
    # Hadoop starts a process for the permissions of each file: this way takes less than half as long.
    "-Djdk.lang.Process.launchMechanism=VFORK",
    "-Xlog:disable",
    *archive_options(),
)
# What committers of output read stays.
_UNUSED: Final = r"(yarn|mapreduce|ipc|ha)\.(?!.*committer).*"


def quick_settings() -> dict[str, str]:
    """Return the settings of Spark."""
    return {
        "spark.executor.extraJavaOptions": " ".join(JVM_OPTIONS),
        # There is less to compute than to compile.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        # Each partition of a stream's state is a file for each micro-batch.
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def quick_environment() -> dict[str, str]:
    """Return the environment variables that give a Python process these settings; what its program sets itself wins.

    Not a directory of settings: it would come first on the class path of each JVM, so that no archive fits.
    """
    settings = [part for key, value in quick_settings().items() for part in ("--conf", f"{key}={value}")]
    return {
        "PYSPARK_SUBMIT_ARGS": shlex.join([*settings, "pyspark-shell"]),
        "SPARK_SUBMIT_OPTS": " ".join(JVM_OPTIONS),
    }


def shorten_configuration(session: SparkSession) -> None:
    """Take out of Hadoop's configuration what no test needs: YARN, MapReduce, and which file each value is from.

    Spark serialises the configuration several times for each query, each task reads all of it, and Hadoop compresses
    the name of the file of each value by itself. CREATE TABLE, INSERT, SELECT and DELETE of ten rows take 0.85 s of the
    JVM's processor time with these names, 0.58 s without. Of what is left, 780 of 1,100 values, for YARN, MapReduce and
    calls between servers, take a fifth. Sessions of clusters, servers and the SQL prompt keep all, as users have it.
    """
    context = session.sparkContext
    jvm: Any = context._jvm
    jvm.org.apache.hadoop.mapred.JobConf()  # loading its class makes all configurations read their files again
    configuration = context._jsc.hadoopConfiguration()
    assert configuration.size() > 0
    _field(configuration, "updatingResource").clear()
    unused = jvm.java.util.regex.Pattern.compile(_UNUSED).asMatchPredicate()
    _field(configuration, "properties").keySet().removeIf(unused)


def _field(owner: Any, name: str) -> Any:
    field = owner.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)

"""Hand the classes of two Java files to executors, in a jar that the driver makes.

Source:
    ``SparkContext.addJar``; ``JobArtifactSet.getActiveOrDefault``, by which the tasks of a session of Spark Connect
    load its own jars only.
"""

from __future__ import annotations

import logging
import threading
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.captured import CapturedException

from penstock.spark.versions.facts import ROW_DELTAS

if TYPE_CHECKING:
    from penstock.spark.connector.gateway import Bridge, JavaObject

_LOG: Final = logging.getLogger(__name__)
# Not that of the bridge: a task may wait for a free core.
_ONE_AT_A_TIME: Final = threading.Lock()
_UNKNOWN_CLASS: Final = ("ClassNotFoundException", "NoClassDefFoundError", "InvalidClassException")


def executors_have_classes(bridge: Bridge) -> bool:
    """Return whether executors have the classes; the first call for an application or session hands these to them."""
    context = bridge.session().sparkContext()
    # An application that follows a stopped one in this JVM has other executors. Tasks of a session of Connect load its
    # own jars, and those that the application had when the executor started.
    application, session = (str(each) for each in bridge.driver.jarOwners(context))
    with _ONE_AT_A_TIME:
        for owner in dict.fromkeys(("", session)):
            add = partial(_add, bridge, context, is_of_application=not owner)
            if not bridge.cached(("classes added", application, owner), add):
                return False
        return bool(bridge.cached(("classes loaded", application, session), partial(_probe, bridge, context)))


def _add(bridge: Bridge, context: JavaObject, *, is_of_application: bool) -> bool:
    """Return whether the session may add the class."""
    try:
        bridge.driver.addJar(context, bridge.cached("jar of classes", partial(_make_jar, bridge)), is_of_application)
    except (Py4JError, CapturedException) as error:
        _warn(error)
        return False
    return True


def _probe(bridge: Bridge, context: JavaObject) -> bool:
    """Return whether a task could load the class; errors that do not concern it are raised."""
    try:
        return bool(bridge.file_readers.probe(context) == 1)
    except (Py4JError, CapturedException) as error:
        if not any(name in str(error) for name in _UNKNOWN_CLASS):
            raise
        _warn(error)
        return False


def _warn(error: Exception) -> None:
    _LOG.warning(
        "executors load no class that this session adds, so Python workers read tables with deletion vectors, changed "
        "columns or files of several formats, and row changes by Spark SQL write whole files in place of deletion "
        "vectors: %s",
        str(error).strip(),
    )


def _make_jar(bridge: Bridge) -> str:
    """Return the path of a jar with the classes. Executors may start at any time, so it exists as long as the JVM."""
    file = bridge.java("java.io.File").createTempFile("penstock-", ".jar")
    file.deleteOnExit()
    path = str(file.getPath())
    with zipfile.ZipFile(path, "w") as jar:
        for each in ("FileReaders", *(("ChangeWriters",) if ROW_DELTAS.is_here else ())):
            codes = bridge.executor_class(each)[1]
            for name in codes:
                jar.writestr(f"{name.replace('.', '/')}.class", bytes(codes[name]))
    return path

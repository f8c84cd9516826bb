"""Make input partitions of files in a given order.

Py4J takes one call for each object that Python makes in the JVM, so this module builds a function of the JVM that makes
a file from two arrays and a position, and lets the JVM call that for all files of a micro-batch.

Source:
    ``java.lang.invoke.MethodHandles``; ``PartitionedFile`` and ``FilePartition`` of Spark.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject

# Places of the parameters of PartitionedFile that are the same for all files, from the last one to the first: metadata
# columns, modification time, hosts, start, partition values. Left are path, length and size of the file.
_METADATA, _MODIFIED, _HOSTS, _START, _VALUES = 7, 5, 4, 2, 0
_TEXTS: Final = "[Ljava.lang.String;"


class FilePartitions:
    """Makes ``FilePartition`` objects, which Spark's file readers read from the first file to the last."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._file = bridge.private("PartitionedFile")
        self._partition = bridge.private("FilePartition")
        self._lines = bridge.jvm.java.util.regex.Pattern.compile("\n")
        self._generator = bridge.java_class("java.util.function.IntFunction")
        # Called by reflection: Py4J does not find a method that takes arrays of any objects.
        parameters = [bridge.java_class("[Ljava.lang.Object;"), self._generator]
        classes = bridge.array(bridge.jvm.java.lang.Class, parameters)
        self._set_all = bridge.java_class("java.util.Arrays").getMethod("setAll", classes)
        self._make = _file_maker(bridge)

    def make(self, runs: Sequence[Sequence[tuple[str, int]]]) -> JavaObject:
        """Return an array of partitions, one for each run of files.

        Args:
            runs: URI and exact size in bytes of each file, in the order in which they are to be read.
        """
        files = self._files([file for run in runs for file in run])
        made = []
        for place, (run, end) in enumerate(zip(runs, accumulate(len(run) for run in runs), strict=True)):
            part = self._bridge.gateway.new_array(self._file, len(run))
            self._bridge.jvm.java.lang.System.arraycopy(files, end - len(run), part, 0, len(run))
            made.append(self._partition(place, part))
        return self._bridge.array(self._bridge.connector("read.InputPartition"), made)

    def _files(self, given: Sequence[tuple[str, int]]) -> JavaObject:
        """Return an array of files; the number of calls to the JVM does not depend on the number of files."""
        jvm, bridge = self._bridge.jvm, self._bridge
        files = bridge.gateway.new_array(self._file, len(given))
        if given:
            columns = [self._lines.split("\n".join(str(file[place]) for file in given)) for place in (0, 1)]
            invoke = jvm.java.lang.invoke
            bound = invoke.MethodHandles.insertArguments(self._make, 0, bridge.objects(columns))
            generator = invoke.MethodHandleProxies.asInterfaceInstance(self._generator, bound)
            self._set_all.invoke(None, bridge.objects([files, generator]))
        return files


def _file_maker(bridge: Bridge) -> JavaObject:
    """Return a function of the JVM: from URIs, sizes as texts and a position to the whole file at that position."""
    invoke, java_class = bridge.jvm.java.lang.invoke, bridge.java_class
    handles, method_type = invoke.MethodHandles, invoke.MethodType.methodType
    lookup = handles.publicLookup()
    file, path, text, texts = (
        java_class(name) for name in (*bridge.class_names("PartitionedFile", "SparkPath"), "java.lang.String", _TEXTS)
    )
    maker = lookup.unreflectConstructor(file.getConstructors()[0])
    for place, value in (
        (_METADATA, bridge.scala_map({})),
        (_MODIFIED, 0),
        (_HOSTS, bridge.strings(())),
        (_START, 0),
        (_VALUES, bridge.private("InternalRow").empty()),
    ):
        maker = handles.insertArguments(maker, place, bridge.objects([value]))
    element = handles.arrayElementGetter(texts)
    to_path = lookup.findStatic(path, "fromUrlString", method_type(path, text))
    number = bridge.jvm.java.lang.Long.TYPE
    to_number = lookup.findStatic(java_class("java.lang.Long"), "parseLong", method_type(number, text))
    for place, convert in ((2, to_number), (1, to_number), (0, to_path)):
        maker = handles.collectArguments(maker, place, handles.filterReturnValue(element, convert))
    # The URIs, the sizes, the position, from the pairs of array and position that path, length and size take.
    parameters = bridge.array(bridge.jvm.java.lang.Class, [texts, texts, bridge.jvm.java.lang.Integer.TYPE])
    return handles.permuteArguments(maker, method_type(file, parameters), bridge.ints((0, 2, 1, 2, 1, 2)))

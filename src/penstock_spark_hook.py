"""Lets each driver in Python have the catalogs of Spark's settings, as ``penstock.serve`` does, without a line of code.

Python imports this module at its start, by the file ``penstock_spark_hook.pth`` of the wheel. So it imports almost
nothing, and only waits until PySpark's sessions are imported. ``PENSTOCK_SPARK_HOOK=off`` turns it off.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SESSIONS = "pyspark.sql.session"
_NAMED = "=penstock.Catalog"
_SERVED = "_penstock_served"


class SessionFinder:
    """Finder of modules that extends the class of sessions when its module is loaded, and is gone then."""

    @classmethod
    def find_spec(cls, name: str, _path: Any = None, _target: Any = None) -> Any:  # noqa: ANN401 - of importlib
        """Return the module of sessions, found by the other finders; None for each other one."""
        if name != _SESSIONS:
            return None
        sys.meta_path.remove(cls)
        from importlib.util import find_spec  # noqa: PLC0415 - each Python that starts would import it

        spec: Any = find_spec(name)
        spec.loader = SessionLoader(spec.loader)
        return spec


class SessionLoader:
    """Loader of the module of sessions by another one, which may be that of all modules of an archive."""

    def __init__(self, loader: Any) -> None:  # noqa: ANN401 - as above
        self._loader = loader

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:  # noqa: ANN401 - as above
        """Return the new module, or None for one as Python makes them."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:  # noqa: ANN401 - as above
        """Load the module, and extend its class of sessions."""
        self._loader.exec_module(module)
        extend(module.SparkSession)


def extend(kind: Any) -> None:  # noqa: ANN401 - PySpark is not imported here
    """Serve the catalogs of an application's settings when its first session is made."""
    begin = kind.__init__

    def begin_and_serve(self: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as above
        begin(self, *arguments, **named)
        serve_once(self)

    kind.__init__ = begin_and_serve


def serve_once(session: Any) -> None:  # noqa: ANN401 - as above
    """Serve the catalogs with which the application of a session was started, unless that was done before."""
    context = session.sparkContext
    if hasattr(context, _SERVED):
        return
    setattr(context, _SERVED, True)
    try:
        settings = context._conf.toDebugString()  # noqa: SLF001 - the public way asks the JVM for each setting
        if any(line.endswith(_NAMED) for line in settings.splitlines()):
            from penstock import serve  # noqa: PLC0415 - most drivers need nothing of it

            serve(session)
    except Exception as error:  # noqa: BLE001 - a driver starts without the catalogs, and says why they are missing
        sys.stderr.write(f"penstock: the catalogs of Spark's settings are missing: {error}\n")


if os.environ.get("PENSTOCK_SPARK_HOOK", "").lower() not in {"off", "0", "false"}:
    sys.meta_path.insert(0, SessionFinder)

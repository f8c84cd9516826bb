"""All procedures by name: those of ``penstock.sql``, and of ``CALL`` in a catalog that is attached to Spark.

Source:
    Paimon's Flink procedures: names, arguments and their order; docs/spec/compaction.md section 7.1.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.dialect.run.procedures import branches, compaction, migration, retention, tags
from penstock.dialect.run.procedures.arguments import Arguments
from penstock.dialect.run.procedures.unsupported import ELSEWHERE
from penstock.errors import InvalidSqlError, TableStoreError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.outcome import Outcome
    from penstock.dialect.parse.statements import Call
    from penstock.dialect.run.procedures.procedure import Procedure
    from penstock.dialect.state import SqlState

PROCEDURES: Final[Mapping[str, Procedure]] = {
    **compaction.PROCEDURES,
    **tags.PROCEDURES,
    **branches.PROCEDURES,
    **retention.PROCEDURES,
    **migration.PROCEDURES,
}
"""All procedures, by name."""


def call(state: SqlState, statement: Call) -> Outcome:
    """Run a procedure.

    Raises:
        InvalidSqlError: there is no such procedure.
        UnsupportedFeatureError: Paimon has this procedure, but Penstock does not have the feature.
        NotFoundError: the session has no catalog of that name.
        InvalidOptionError: the procedure does not accept these arguments.
        TableStoreError: as the method that the procedure calls.
    """
    procedure = PROCEDURES.get(statement.procedure)
    if procedure is None:
        raise _unknown(statement.procedure)
    parameters, aliases = procedure.parameters, procedure.aliases
    arguments = Arguments(statement.procedure, parameters, aliases, statement.arguments)
    return procedure.run(state.at_catalog(statement.catalog), arguments)


def _unknown(name: str) -> TableStoreError:
    if name in ELSEWHERE:
        return UnsupportedFeatureError(f"there is no procedure sys.{name}: {ELSEWHERE[name]}")
    near = get_close_matches(name, PROCEDURES, n=1)
    hint = f"did you mean sys.{near[0]}?" if near else f"there are {', '.join(PROCEDURES)}"
    return InvalidSqlError(f"there is no procedure sys.{name}; {hint}")

"""New values of rows: constants, and expressions over the columns."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Not pyarrow.acero, which imports pyarrow.dataset and thereby pandas: two seconds when a driver starts.
from pyarrow._acero import (  # type: ignore[import-untyped]
    Declaration,
    ProjectNodeOptions,
    TableSourceNodeOptions,
)

from penstock.datafile.conform import make_batch
from penstock.datafile.python_values import stored_value
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidOptionError, NotFoundError, SchemaMismatchError
from penstock.options import BucketOptions
from penstock.table.write.check_rows import conform_batch, plan_conform

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.table.ref import TableRef


_NO_COLUMN: Final = re.compile(r"No match for FieldRef\.Name\((?P<name>.*?)\) in ")


class NewValues:
    """New values of some columns, computed from the rows before the change.

    Args:
        ref: the table.
        values: column to constant, or to an expression of ``pyarrow.compute`` over the columns.

    Attributes:
        names: the columns to set.
    """

    def __init__(self, ref: TableRef, values: Mapping[str, object]) -> None:
        if not values:
            raise InvalidOptionError(f"table {ref.name}: name the columns to set, such as {{'price': 0}}")
        self._ref = ref
        self._schema = to_arrow_schema(ref.schema.fields)
        self.names = tuple(values)
        for name in self.names:
            if name not in self._schema.names:
                raise NotFoundError(
                    f"table {ref.name}: no column '{name}' to set; its columns are {', '.join(self._schema.names)}"
                )
        self._fields = {field.name: field for field in ref.schema.fields}
        self._expressions = {name: self._expression(name, value) for name, value in values.items()}
        self._conform_schema = replace(
            ref.schema, fields=tuple(self._fields[name] for name in self.names), partition_keys=(), primary_keys=()
        )
        keys = (*ref.schema.partition_keys, *_bucket_key(ref))
        self.key_names = tuple(name for name in self.names if name in keys)

    def of(self, rows: pa.RecordBatch) -> dict[str, ArrowAny]:
        """Return the new values of some rows, which may have more columns than the table, in the table's types."""
        values = evaluate_all(rows, self._expressions, self._ref.name)
        arrays = [
            array if self._is_column(name, rows) else self._rounded(name, array) for name, array in values.items()
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(values))
        conformed = conform_batch(batch, plan_conform(self._conform_schema, batch.schema, self._ref.name))
        return {name: conformed.column(name) for name in self.names}

    def _is_column(self, name: str, rows: pa.RecordBatch) -> bool:
        expression: Any = self._expressions[name]
        return any(expression.equals(pc.field(each)) for each in rows.schema.names)

    def _rounded(self, name: str, array: ArrowAny) -> ArrowAny:
        """Return computed numbers of a FLOAT or DOUBLE column rounded to its values, as each step of the computation.

        Numbers that it does not reach stay, so that they are refused like any value that does not fit.
        """
        wanted = self._schema.field(name).type
        given = array.type
        if not pa.types.is_floating(wanted) or not (pa.types.is_floating(given) or pa.types.is_decimal(given)):
            return array
        rounded = array.cast(wanted)
        return array if pc.any(pc.is_inf(rounded)).as_py() else rounded

    def _expression(self, name: str, value: object) -> pc.Expression:
        if isinstance(value, pc.Expression):
            return value
        field = self._fields[name]
        try:
            stored = stored_value(value, field.type, name)
        except ValueError as error:
            raise SchemaMismatchError(f"table {self._ref.name}: {error}") from error
        return pc.scalar(pa.array([stored], self._schema.field(name).type)[0])


def _bucket_key(ref: TableRef) -> tuple[str, ...]:
    options = ref.parsed(BucketOptions)
    return tuple(options.bucket_key) if options.bucket > 1 else ()


def evaluate_all(rows: pa.RecordBatch, expressions: Mapping[str, pc.Expression], table: str) -> dict[str, ArrowAny]:
    """Evaluate expressions on rows."""
    source = Declaration("table_source", TableSourceNodeOptions(pa.Table.from_batches([rows])))
    project = Declaration("project", ProjectNodeOptions(list(expressions.values()), list(expressions)), inputs=[source])
    try:
        result = project.to_table(use_threads=False).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        unknown = _NO_COLUMN.search(str(error))
        if unknown is not None:
            raise InvalidOptionError(
                f"table {table}: an expression cannot be evaluated: there is no column '{unknown['name']}' here; "
                f"there are {', '.join(rows.schema.names)}"
            ) from error
        hint = (
            "; multiply decimals by a decimal.Decimal of few digits, since an int is of 19"
            if "Precision" in str(error)
            else ""
        )
        raise InvalidOptionError(f"table {table}: an expression cannot be evaluated: {error}{hint}") from error
    return {name: _one_chunk(result.column(name)) for name in expressions}


def _one_chunk(column: pa.ChunkedArray[Any]) -> ArrowAny:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def put_values(batch: pa.RecordBatch, places: npt.NDArray[np.int64], values: Mapping[str, ArrowAny]) -> pa.RecordBatch:
    """Return the batch with new values in some rows.

    Args:
        places: rows that get the values, in the order of the values.
    """
    positions = np.arange(batch.num_rows)
    positions[places] = batch.num_rows + np.arange(len(places))
    taken = pa.array(positions)
    arrays = [
        pa.concat_arrays([batch.column(name), values[name]]).take(taken) if name in values else batch.column(name)
        for name in batch.schema.names
    ]
    return make_batch(arrays, batch.schema, batch.num_rows)


def differs(before: ArrowAny, after: ArrowAny) -> npt.NDArray[np.bool_]:
    """Return where two columns differ; NULL equals NULL."""
    unequal: ArrowAny = pc.not_equal(before, after)
    lost_or_found: ArrowAny = pc.xor(pc.is_null(before), pc.is_null(after))
    answer: npt.NDArray[np.bool_] = pc.if_else(pc.is_null(unequal), lost_or_found, unequal).to_numpy(
        zero_copy_only=False
    )
    return answer

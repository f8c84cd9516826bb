"""Laws of schema changes, whatever their order."""

from dataclasses import dataclass, field, replace

from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support import strategies as values

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnType,
    after,
    before,
)
from penstock.catalog.checks.columns import check_schema, check_types
from penstock.catalog.checks.options import rename_in_options
from penstock.catalog.new_schema import TableDefinition, build_schema
from penstock.catalog.schema_changes import apply_changes
from penstock.datafile.widening import is_widening
from penstock.errors import AlreadyExistsError, InvalidSchemaError, TableStoreError
from penstock.format.schema import TableSchema, decode_schema, encode_schema, highest_field_id, iter_fields
from penstock.format.types.data_types import BIGINT, INT, AtomicType, DataField, DataType, with_nullability
from penstock.format.types.ddl import ColumnSpec, parse_columns
from penstock.format.watermark import computed_columns, declared_watermark

TABLE = "shop.orders"
# Few, so that they collide; with a comma a name could not be told apart inside 'bucket-key'.
NAMES = st.sampled_from(["a", "b", "c", "A", "x y", "`", "dt", "k", "t"])
PICK = st.integers(0, 10**6)


def _fits_a_table(data_type: DataType) -> bool:
    try:
        check_types([DataField(id=0, name="a", type=data_type)], {}, TABLE)
    except InvalidSchemaError:
        return False
    return True


TYPES = values.data_types().filter(_fits_a_table)


def _evolve(schema: TableSchema, *changes: SchemaChange) -> TableSchema:
    return apply_changes(schema, changes, table=TABLE, has_snapshots=True, time_millis=schema.id)


@dataclass
class _Column:
    name: str
    id: int
    comment: str | None = None


@dataclass
class _Model:
    columns: list[_Column] = field(default_factory=list)
    ids_ever: set[int] = field(default_factory=set)

    def named(self, name: str) -> _Column | None:
        return next((column for column in self.columns if column.name == name), None)


class SchemaChanges(RuleBasedStateMachine):
    """A table with a partition key, a bucket key and a watermark goes through changes; a list of columns keeps pace."""

    @initialize()
    def create(self) -> None:
        definition = TableDefinition(
            columns=parse_columns("k INT, dt STRING, t TIMESTAMP(3), a INT"),
            partition_by=("dt",),
            options=(("bucket", "2"), ("bucket-key", "k")),
            watermark=("t", "INTERVAL '5' SECOND"),
        )
        self.schema = build_schema(definition, defaults={}, table=TABLE, time_millis=0)
        columns = [_Column(name, number) for number, name in enumerate(("k", "dt", "t", "a"))]
        self.model = _Model(columns, {0, 1, 2, 3})
        self.history = [self.schema]

    def _try(self, change: SchemaChange, *, allowed: bool) -> bool:
        try:
            evolved = _evolve(self.schema, change)
        except TableStoreError:
            assert not allowed
            return False
        assert allowed
        if evolved is not self.schema:
            assert evolved.id == self.schema.id + 1
            self.history.append(evolved)
        self.schema = evolved
        return True

    @rule(name=NAMES, data_type=TYPES, pick=PICK)
    def add(self, name: str, data_type: DataType, pick: int) -> None:
        data_type = with_nullability(data_type, nullable=True)
        place = pick % (len(self.model.columns) + 1)
        position = after(self.model.columns[place - 1].name) if place else FIRST
        change = AddColumn(column=name, type=data_type, position=position)
        if self._try(change, allowed=self.model.named(name) is None):
            added = next(column for column in self.schema.fields if column.name == name)
            fresh = {each.id for each in iter_fields((added,))}
            assert not fresh & self.model.ids_ever
            self.model.ids_ever |= fresh
            self.model.columns.insert(place, _Column(name, added.id))

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        column = self.model.named(old)
        allowed = column is not None and old != "dt" and self.model.named(new) is None
        if self._try(RenameColumn(column=old, new_name=new), allowed=allowed) and column:
            column.name = new

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        column = self.model.named(name)
        # The first three columns are the partition key, the bucket key and the watermark's, under whatever name.
        if self._try(DropColumn(column=name), allowed=column is not None and column.id > 2) and column:
            self.model.columns.remove(column)

    @rule(name=NAMES, pick=PICK)
    def move(self, name: str, pick: int) -> None:
        column = self.model.named(name)
        assume(column is not None)
        others = [each for each in self.model.columns if each is not column]
        assume(others)
        target = pick % len(others)
        if self._try(MoveColumn(column=name, position=before(others[target].name)), allowed=True) and column:
            others.insert(target, column)
            self.model.columns = others

    @rule(name=NAMES, comment=st.none() | st.text(max_size=3))
    def comment(self, name: str, comment: str | None) -> None:
        column = self.model.named(name)
        if self._try(UpdateColumnComment(column=name, comment=comment), allowed=column is not None) and column:
            column.comment = comment

    @rule(count=st.integers(-2, 5))
    def rescale(self, count: int) -> None:
        self._try(SetOption(key="bucket", value=str(count)), allowed=count > 0)

    @invariant()
    def the_columns_are_those_of_the_model(self) -> None:
        found = [(column.name, column.id, column.description) for column in self.schema.fields]
        assert found == [(column.name, column.id, column.comment) for column in self.model.columns]

    @invariant()
    def the_highest_id_is_the_highest_ever(self) -> None:
        assert self.schema.highest_field_id == max(self.model.ids_ever) >= highest_field_id(self.schema.fields)

    @invariant()
    def the_keys_follow_their_columns(self) -> None:
        by_id = {column.id: column.name for column in self.model.columns}
        assert self.schema.option_map["bucket-key"] == by_id[0]
        assert self.schema.partition_keys == (by_id[1],)
        watermark = declared_watermark(self.schema.option_map)
        assert watermark is not None
        assert (watermark.column, watermark.delay_millis) == (by_id[2], 5_000)

    @invariant()
    def the_schema_is_one_that_can_be_stored_and_loaded(self) -> None:
        check_schema(self.schema, TABLE)
        assert decode_schema(encode_schema(self.schema), "") == self.schema

    @invariant()
    def each_change_is_the_next_schema(self) -> None:
        assert [schema.id for schema in self.history] == list(range(len(self.history)))


TestSchemaChanges = SchemaChanges.TestCase


def _as_flink_reads(schema: TableSchema) -> list[str]:
    """The column list that Flink restores: computed columns at their places, physical ones between them."""
    computed = computed_columns(schema.fields, schema.option_map)
    physical = iter(schema.field_names)
    # A place beyond the count makes Flink fail; here the iterator would run dry.
    return [
        computed[place] if place in computed else next(physical) for place in range(len(schema.fields) + len(computed))
    ]


@given(st.lists(st.booleans(), min_size=2, max_size=12), st.lists(PICK, max_size=8))
def test_flink_finds_its_computed_columns_where_they_were_after_any_drops(kinds: list[bool], drops: list[int]) -> None:
    assume(kinds.count(True) >= 2)
    names = [f"{'p' if is_physical else 'c'}{place}" for place, is_physical in enumerate(kinds)]
    options = tuple(
        (f"schema.{place}.{part}", name if part == "name" else "PROCTIME()")
        for place, name in enumerate(names)
        if name.startswith("c")
        for part in ("name", "expr")
    )
    columns = tuple(ColumnSpec(name=name, type=INT) for name in names if name.startswith("p"))
    definition = TableDefinition(columns=columns, options=options)
    schema = build_schema(definition, defaults={}, table=TABLE, time_millis=0)
    assert _as_flink_reads(schema) == names
    for pick in drops:
        if len(schema.fields) == 1:
            break
        dropped = schema.field_names[pick % len(schema.fields)]
        schema = _evolve(schema, DropColumn(column=dropped))
        names.remove(dropped)
        assert _as_flink_reads(schema) == names


@given(values.schemas(types=TYPES), values.names(), TYPES)
def test_any_column_added_to_any_schema_leaves_the_others_as_they_are(
    schema: TableSchema, name: str, data_type: DataType
) -> None:
    schema = replace(schema, options=(), version=3)
    data_type = with_nullability(data_type, nullable=True)
    try:
        evolved = _evolve(schema, AddColumn(column=name, type=data_type))
    except AlreadyExistsError:
        assert name in schema.field_names
        return
    assert evolved.fields[:-1] == schema.fields
    assert evolved.fields[-1].id == schema.highest_field_id + 1
    ids = [each.id for each in iter_fields(evolved.fields)]
    assert len(ids) == len(set(ids))


@given(st.dictionaries(st.sampled_from(["bucket-key", "sequence.field", "fields.a.stats-mode", "fields.a,b.x"]), NAMES))
def test_renaming_there_and_back_restores_the_options(options: dict[str, str]) -> None:
    assume("zz" not in options.values())
    assert rename_in_options(rename_in_options(options, "a", "zz"), "zz", "a") == options


@given(values.atomic_types(), values.atomic_types(), values.atomic_types())
def test_widening_is_an_order_of_types(one: AtomicType, two: AtomicType, three: AtomicType) -> None:
    if is_widening(one, two) and is_widening(two, three):
        assert is_widening(one, three)
    if is_widening(one, two) and is_widening(two, one):
        assert with_nullability(one, nullable=True) == with_nullability(two, nullable=True)


@given(values.atomic_types(), values.atomic_types())
def test_a_widening_is_never_asked_about_and_everything_else_is(one: AtomicType, two: AtomicType) -> None:
    definition = TableDefinition(columns=(ColumnSpec(name="x", type=BIGINT), ColumnSpec(name="a", type=one)))
    schema = build_schema(definition, defaults={}, table=TABLE, time_millis=0)
    try:
        evolved = _evolve(schema, UpdateColumnType(column="a", type=two))
    except InvalidSchemaError:
        assert not is_widening(one, two)
    else:
        assert is_widening(one, two)
        assert evolved.fields[1].type.nullable == one.nullable

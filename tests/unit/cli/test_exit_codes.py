"""Exit codes, and errors as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import Table, errors
from penstock.cli.exit_codes import ExitCode, exit_code_of

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Command

CODES = {
    errors.InvalidOptionError: 2,
    errors.InvalidSchemaError: 2,
    errors.InvalidFilterError: 2,
    errors.InvalidSqlError: 2,
    errors.NotFoundError: 3,
    errors.DataLossError: 3,
    errors.AlreadyExistsError: 4,
    errors.CommitConflictError: 5,
    errors.CommitUnknownError: 6,
    errors.StorageError: 7,
    errors.OutOfMemoryError: 7,
    errors.FormatError: 8,
    errors.SchemaMismatchError: 9,
    errors.UnsupportedFeatureError: 10,
    errors.CheckpointError: 1,
    errors.LeaseHeldError: 11,
    errors.TimedOutError: 13,
    errors.TableStoreError: 1,
}


@pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)
def test_each_error_ends_the_command_with_its_code_and_one_line(
    orders: Command, monkeypatch: pytest.MonkeyPatch, kind: type[errors.TableStoreError]
) -> None:
    def fail(*_args: object, **_keywords: object) -> None:
        raise kind("table shop.orders: two\nlines")

    monkeypatch.setattr(Table, "to_batches", fail)
    result = orders("read", "shop.orders", code=CODES[kind])
    assert result.stderr == "error: table shop.orders: two lines\n"
    assert result.stdout == ""


def test_every_class_of_the_tree_has_a_code() -> None:
    tree = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TableStoreError)
    }
    assert tree == set(CODES)
    assert all(exit_code_of(kind("x")) == code for kind, code in CODES.items())


def test_debug_keeps_the_traceback(orders: Command) -> None:
    result = orders("read", "shop.nothing", "--debug", code=1)
    assert isinstance(result.exception, errors.NotFoundError)


def test_an_interrupt_ends_with_130(orders: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object, **_keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "to_batches", interrupt)
    assert orders("read", "shop.orders", code=ExitCode.INTERRUPTED).stderr == "error: interrupted\n"


def test_usage_errors_end_with_2(orders: Command) -> None:
    for arguments in (
        ["read"],
        ["nonsense"],
        ["read", "shop.orders", "--nope"],
        ["read", "shop.orders", "--limit", "x"],
    ):
        orders(*arguments, code=2)
    assert "database.table" in orders("read", "a.b.orders", code=2).stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("raed shop.orders", "no such command 'raed'; did you mean read?"),
        ("zzzz", "no such command 'zzzz'"),
        ("tag creat shop.orders x", "no such command 'creat'; did you mean create?"),
        ("read shop.orders --limti 3", "no such option: --limti; did you mean --limit?"),
        ("read shop.orders --zzzz 3", "no such option: --zzzz"),
        ("read", "missing argument 'TABLE'"),
        ("thrift-server --port -1", "invalid value for '--port': Input should be greater than or equal to 0"),
        ("--format xml list", "invalid value for '--format': 'xml' is not one of 'table', 'json', 'csv'"),
        ("read a.b.nope", "expected database.table"),
    ],
)
def test_errors_of_the_line_have_the_form_of_all_errors(orders: Command, line: str, says: str) -> None:
    last = orders(*line.split(), code=2).stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert says in last
    assert ("did you mean" in says) == ("did you mean" in last)


def test_the_usage_names_arguments_once(orders: Command) -> None:
    for command, usage in (
        ("read", "[OPTIONS] TABLE"),
        ("report", "[OPTIONS] TABLE..."),
        ("append", "[OPTIONS] TABLE FILE..."),
        ("compact", "[OPTIONS] [TABLE]"),
        ("tag create", "[OPTIONS] TABLE TAG"),
        ("alter set", "[OPTIONS] TABLE KEY=VALUE..."),
    ):
        first = orders(*command.split(), "--help").stdout.splitlines()[0]
        assert first.endswith(f"{command} {usage}"), first


def test_without_a_warehouse_only_paths_are_understood(orders: Command) -> None:
    assert "--warehouse" in orders("list", "-w", "", code=2).stderr
    location = orders.catalog.load_table("shop.orders").location
    assert orders("read", location, "-w", "", "--format", "json").stdout == "[]\n"


def test_a_misspelt_option_warns_on_the_error_stream(orders: Command) -> None:
    result = orders("read", "shop.orders", "-o", "scan.snapshot-idd=1", "--format", "json")
    assert result.stderr.startswith("warning: table shop.orders: option 'scan.snapshot-idd' is not known")
    assert result.stdout == "[]\n"


def test_a_change_that_others_won_says_so(orders: Command) -> None:
    assert "already exists" in orders("create", "shop.orders", "a INT", code=4).stderr
    assert "already exists" in orders("create", "shop", code=4).stderr


def test_quiet_keeps_messages_back_but_not_data(orders: Command) -> None:
    result = orders("append", "shop.orders", "-", "--input-format", "json", "-q", input='{"order_id": 1}\n')
    assert result.output == ""
    assert orders.rows("shop.orders", "--quiet")[0]["order_id"] == 1


def test_version_is_printed(penstock: Command) -> None:
    assert penstock("--version").stdout.startswith("penstock 0.")

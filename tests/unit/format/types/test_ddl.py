import pytest

from penstock.errors import InvalidSchemaError
from penstock.format.types.data_types import BIGINT, DOUBLE, STRING, decimal_type, timestamp_type, with_nullability
from penstock.format.types.ddl import ColumnSpec, parse_columns


def test_columns_come_in_order_with_comment_default_and_nullability() -> None:
    text = """
        order_id BIGINT NOT NULL COMMENT 'it''s the order',
        `user` STRING,
        price DECIMAL(10,2) DEFAULT -1.5 NOT NULL,  -- in euro
        note STRING DEFAULT 'n/a' COMMENT "free text",
        order_time TIMESTAMP(3)
    """
    assert parse_columns(text) == (
        ColumnSpec(name="order_id", type=with_nullability(BIGINT, nullable=False), description="it's the order"),
        ColumnSpec(name="user", type=STRING),
        ColumnSpec(name="price", type=with_nullability(decimal_type(10, 2), nullable=False), default_value="-1.5"),
        ColumnSpec(name="note", type=STRING, description="free text", default_value="n/a"),
        ColumnSpec(name="order_time", type=timestamp_type(3)),
    )


def test_keywords_serve_as_column_names() -> None:
    names = [column.name for column in parse_columns("comment STRING, watermark STRING, date DATE, array INT, 2q INT")]
    assert names == ["comment", "watermark", "date", "array", "2q"]


def test_names_outside_of_ascii_need_no_quotes() -> None:
    assert parse_columns("größe DOUBLE") == (ColumnSpec(name="größe", type=DOUBLE),)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "expected a column name"),
        ("a INT,", 7, "expected a column name"),
        ("a", 2, "expected a type"),
        ("a BIGNT", 3, "did you mean BIGINT?"),
        ("a INT b INT", 7, "expected ','"),
        ("a timestamp[us]", 12, "us TIMESTAMP(6)"),
        ("a timestamp[us, tz=UTC]", 12, "TIMESTAMP_LTZ for instants"),
        ("a date32[day]", 9, "leave it out of DATE"),
        ("a list<int64>", 3, "write ARRAY<...>"),
        ("a category", 3, "write STRING"),
        ("`` INT", 1, "expected a column name"),
        ("`  ` INT", 1, "expected a column name"),
        ("'a' INT", 1, "expected a column name"),
        ("a INT COMMENT b", 15, "expected the comment in quotes"),
        ("a INT COMMENT 'b", 15, "never closed"),
        ("a INT COMMENT 'x' COMMENT 'y'", 19, "expected ','"),
        ("a INT DEFAULT", 14, "expected a literal"),
        ("a INT DEFAULT - 'x'", 17, "expected a literal"),
        ("id INT, PRIMARY KEY (id) NOT ENFORCED", 9, "no primary key"),
        ("id INT PRIMARY KEY", 8, "no primary key"),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS ts", 18, "watermark is declared separately"),
        ("a INT, b AS a + 1", 10, "computed column"),
        ("a INT) PARTITIONED BY (a", 6, "expected ','"),
        ("a INT PARTITIONED BY (a)", 7, "partition columns are named separately"),
    ],
)
def test_broken_column_list_is_refused_with_position_and_expectation(text: str, position: int, expected: str) -> None:
    with pytest.raises(InvalidSchemaError, match=rf"position {position}\b") as caught:
        parse_columns(text)
    assert expected in str(caught.value)
    assert repr(text) in str(caught.value)

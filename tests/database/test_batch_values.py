"""A batch that one store would take and another not, or that CQL leaves open, is refused where it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from uuid import UUID

import pytest
from contract.lamps import LAMPS
from contract.rooms import lamp
from hypothesis import given
from hypothesis import strategies as st

from slotkeeper.database import Absent, Batch, Expect, Key, Kind, Slice, Value, Verb, Write, delete, insert, update

HALL: Key = (UUID(int=1), "hall")
ONE, TWO = lamp(1), lamp(2)
FREE: Mapping[str, tuple[Value, ...]] = {"holder": (None,)}
GUARD = delete(lamp(9), expect=FREE)


class Color(StrEnum):
    """A text of a class of its own."""

    RED = "red"


class Size(IntEnum):
    """A number of a class of its own."""

    BIG = 3


WRONG_VALUES: list[tuple[str, object]] = [
    ("slot", 2**31),
    ("slot", -(2**31) - 1),
    ("slot", "1"),
    ("slot", 1.0),
    ("slot", True),
    ("slot", b"1"),
    ("total", 2**63),
    ("total", -(2**63) - 1),
    ("total", 1.5),
    ("version", 253_402_300_800_000),
    ("version", -62_135_596_800_001),
    ("version", "2026-01-01"),
    ("version", 1.5),
    ("version", False),
    ("holder", 1),
    ("holder", b"ada"),
    ("holder", UUID(int=1)),
    ("holder", "\ud83d"),
    ("seal", str(UUID(int=1))),
    ("seal", 1),
    ("seal", bytes(16)),
    ("body", "text"),
    ("body", bytearray(b"x")),
    ("body", memoryview(b"x")),
    ("body", 1),
]
WRONG_KEYS: list[tuple[object, ...]] = [
    (),
    (1,),
    (1, "a", "b"),
    (None, "a"),
    (1, None),
    ("1", "a"),
    (1, 2),
    (2**31, "a"),
    (True, "a"),
    (1, "\udc00"),
]
WRONG_PARTITIONS: list[tuple[object, ...]] = [
    (),
    (UUID(int=1),),
    (UUID(int=1), "hall", 1),
    (UUID(int=1), None),
    (None, "hall"),
    (str(UUID(int=1)), "hall"),
    ("hall", UUID(int=1)),
]


def _named(value: object) -> str:
    """Name a case: every process that runs a part of the tests must give it the same name."""
    return "a memoryview" if isinstance(value, memoryview) else ascii(value)


@pytest.mark.parametrize(("column", "value"), WRONG_VALUES, ids=_named)
def test_value_that_its_column_cannot_keep_is_refused_wherever_it_stands(column: str, value: Value) -> None:
    for write in (
        insert(ONE, {column: value}),
        update(ONE, {column: value}, ttl_s=5),
        update(ONE, {"holder": None}, expect={column: (None, value)}),
        delete(ONE, expect={"holder": (None,), column: (value,)}),
    ):
        with pytest.raises(ValueError, match=f"lamps.* {column} takes no "):
            Batch(LAMPS, HALL, (GUARD, write))


@pytest.mark.parametrize("key", WRONG_KEYS, ids=ascii)
def test_key_that_no_row_can_have_is_refused(key: Key) -> None:
    for write in (insert(key, {}), update(key, {"slot": 1}), delete(key)):
        with pytest.raises(ValueError, match="lamps"):
            Batch(LAMPS, HALL, (GUARD, write))


@pytest.mark.parametrize("partition", WRONG_PARTITIONS, ids=ascii)
def test_partition_that_cannot_be_is_refused(partition: Key) -> None:
    with pytest.raises(ValueError, match="lamps"):
        Batch(LAMPS, partition, (GUARD,))


def test_texts_and_numbers_may_be_of_classes_of_their_own() -> None:
    Batch(LAMPS, HALL, (insert(lamp(Size.BIG, Color.RED), {"holder": Color.RED, "slot": Size.BIG}, absent=True),))


@given(st.sampled_from(Kind), st.integers() | st.text(st.characters()) | st.binary() | st.uuids() | st.booleans())
def test_kind_takes_what_its_class_and_range_allow(kind: Kind, value: object) -> None:
    classes = {Kind.UUID: UUID, Kind.TEXT: str, Kind.BLOB: bytes}
    if kind.takes(value):
        assert type(value) is classes.get(kind, int)
    elif type(value) is classes.get(kind, int):
        assert isinstance(value, int) or "surrogates" in _encoding_error(str(value))


WRONG_WRITES: dict[str, Callable[[], Write]] = {
    "sets nothing": lambda: update(ONE, {}),
    "takes no values": lambda: Write(Verb.DELETE, ONE, {"slot": 1}),
    "takes no values, no TTL": lambda: Write(Verb.DELETE, ONE, ttl_s=1),
    "and no Absent": lambda: Write(Verb.DELETE, ONE, condition=Absent()),
    "an insert may ask for Absent": lambda: Write(Verb.INSERT, ONE, {}, Expect(FREE)),
    "an update for Expect": lambda: Write(Verb.UPDATE, ONE, {"slot": 1}, Absent()),
    "names no column": lambda: update(ONE, {"slot": 1}, expect={}),
    "names no column: leave": lambda: delete(ONE, expect={}),
}
WRONG_BATCHES: dict[str, tuple[Write, ...]] = {
    "without a guard": (insert(ONE, {}), update(TWO, {"slot": 1})),
    "a batch without": (),
    "151 writes": tuple(insert(lamp(n), {}, absent=True) for n in range(151)),
    "no value column lamp": (update(ONE, {"lamp": 1}, expect=FREE),),
    "no value column lump": (update(ONE, {"slot": 1}, expect={"lump": (1,)}),),
    "no value column shelf": (update(ONE, {"shelf": 1}, expect=FREE),),
    "two kinds of condition": (insert(ONE, {}, absent=True), update(ONE, {"slot": 1}, expect=FREE)),
    "two kinds of": (update(ONE, {"slot": 1}, expect=FREE), insert(ONE, {}, absent=True)),
    "set twice": (update(ONE, {"slot": 1}, expect=FREE), update(ONE, {"slot": 1})),
    "slot of the row": (insert(ONE, {"slot": 1}, absent=True), update(ONE, {"slot": 2})),
    "deleted and written": (delete(ONE, expect=FREE), insert(ONE, {"slot": 1})),
    "and written in one batch": (insert(ONE, {"slot": 1}, absent=True), delete(ONE)),
    "is deleted and": (update(ONE, {"slot": 1}, expect=FREE), delete(ONE)),
    "different TTLs": (insert(ONE, {"slot": 1}, absent=True, ttl_s=5), insert(ONE, {"total": 1})),
}


@pytest.mark.parametrize(("complaint", "make"), WRONG_WRITES.items(), ids=list(WRONG_WRITES))
def test_write_that_cql_does_not_know_is_refused(complaint: str, make: Callable[[], Write]) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


@pytest.mark.parametrize("ttl_s", [0, -1, 20 * 365 * 86_400 + 1, 1.5, "1"])
def test_ttl_that_cassandra_does_not_take_is_refused(ttl_s: int) -> None:
    with pytest.raises(ValueError, match="TTL"):
        insert(ONE, {}, ttl_s=ttl_s)


@pytest.mark.parametrize(("complaint", "writes"), WRONG_BATCHES.items(), ids=list(WRONG_BATCHES))
def test_batch_that_cql_refuses_or_leaves_open_is_refused(complaint: str, writes: tuple[Write, ...]) -> None:
    with pytest.raises(ValueError, match=complaint):
        Batch(LAMPS, HALL, writes)


def test_whole_batch_may_stand_on_one_row() -> None:
    Batch(
        LAMPS,
        HALL,
        (
            insert(ONE, {"holder": "ada"}, absent=True, ttl_s=5),
            insert(ONE, {"total": 1}, absent=True, ttl_s=5),
            update(ONE, {"slot": 1}),
            delete(TWO, expect=FREE),
            delete(TWO, expect={"slot": (None, 1)}),
        ),
    )


def test_slice_has_one_bound_and_shows_something() -> None:
    with pytest.raises(ValueError, match="not both"):
        Slice(among=(1,), after=1)
    for limit in (0, -1):
        with pytest.raises(ValueError, match="leave it out"):
            Slice(limit=limit)


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (None, False),
        ({}, False),
        ({"holder": "ada"}, True),
        ({"holder": "ada", "slot": 7}, True),
        ({"holder": "ada", "slot": 1}, False),
        ({"holder": None, "slot": 7}, False),
    ],
)
def test_expectation_takes_a_missing_value_for_null(row: Mapping[str, Value] | None, met: bool) -> None:
    assert Expect({"holder": ("ada",), "slot": (None, 7)}).met_by(row) is met


def test_table_knows_its_columns() -> None:
    assert LAMPS.key == ("house", "room", "shelf", "name")
    assert LAMPS.columns == (*LAMPS.key, *LAMPS.values)
    assert [LAMPS.kind(column) for column in ("house", "shelf", "version")] == [Kind.UUID, Kind.INT, Kind.TIMESTAMP]
    with pytest.raises(KeyError, match="lump"):
        LAMPS.kind("lump")


def _encoding_error(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.reason
    return ""

"""Slices: which rows they show, in which order."""

from __future__ import annotations

from uuid import UUID

import pytest
from contract.lamps import LAMPS
from contract.rooms import Room, lamp

from slotkeeper.database import Key, Slice, insert

LEAST, MOST = -(2**31), 2**31 - 1
# By their bytes in UTF-8: UTF-16 would put U+1F642 before U+FF5E, and a dictionary would put Ä beside A.
NAMES = [
    "",
    "\x00",
    "\x00a",
    " ",
    "0",
    "10",
    "9",
    "A",
    "B",
    "a",
    "a\x00",
    "aa",
    "Ä",
    "é",
    "日",
    "\uff5e",
    "🙂",
    "\U0010ffff",
]
SHELVES = [LEAST, -300, -2, -1, 0, 1, 2, 9, 10, 300, MOST]


@pytest.fixture
def names(room: Room) -> Room:
    """A shelf of many names, and one before and after it."""
    keys = [lamp(7, name) for name in NAMES]
    room.must(*(insert(key, {"slot": 1}, absent=True) for key in reversed([lamp(6), *keys, lamp(8)])))
    return room


def test_empty_partition_shows_nothing(room: Room) -> None:
    assert room.rows() == []
    assert room.rows(Slice((1,)), Slice((1, "a")), Slice(after=3), Slice(limit=1)) == []


def test_no_slices_show_nothing(room: Room) -> None:
    room.put(lamp(1))

    assert room.face.run(room.port.read(LAMPS, room.partition, (), serial=True)) == []


@pytest.mark.parametrize("serial", [True, False])
def test_row_comes_with_its_whole_key_and_every_column(room: Room, serial: bool) -> None:
    room.put(lamp(1, "a"), {"holder": "ada", "seal": UUID(int=5)})

    assert room.rows(serial=serial) == [
        {
            "house": room.house,
            "room": "hall",
            "shelf": 1,
            "name": "a",
            "holder": "ada",
            "slot": None,
            "total": None,
            "version": None,
            "seal": UUID(int=5),
            "body": None,
        }
    ]


def test_texts_are_ordered_by_their_bytes(names: Room) -> None:
    assert names.keys(Slice((7,))) == [lamp(7, name) for name in NAMES]


def test_numbers_are_ordered_as_numbers(room: Room) -> None:
    room.must(*(insert(lamp(shelf), {}, absent=True) for shelf in reversed(SHELVES)))

    assert room.keys() == [lamp(shelf) for shelf in SHELVES]


def test_first_column_orders_before_the_second(room: Room) -> None:
    keys = [lamp(shelf, name) for shelf in (-1, 0, 1) for name in ("a", "b")]
    room.must(*(insert(key, {}, absent=True) for key in (*keys[1::2], *keys[::2])))

    assert room.keys() == keys


def test_prefix_shows_the_rows_below_it(names: Room) -> None:
    assert names.keys(Slice((6,))) == [lamp(6)]
    assert names.keys(Slice((9,))) == []


def test_whole_key_shows_one_row(names: Room) -> None:
    assert names.keys(Slice((7, "a"))) == [lamp(7, "a")]
    assert names.keys(Slice((7, "b"))) == []


@pytest.mark.parametrize("after", range(len(NAMES)))
def test_after_shows_what_is_greater(names: Room, after: int) -> None:
    assert names.keys(Slice((7,), after=NAMES[after])) == [lamp(7, name) for name in NAMES[after + 1 :]]


def test_after_bounds_the_first_column_too(names: Room) -> None:
    assert names.keys(Slice(after=7)) == [lamp(8)]
    assert names.keys(Slice(after=6, limit=1)) == [lamp(7)]
    assert names.keys(Slice(after=MOST)) == []


def test_after_may_name_a_row_that_is_not_there(names: Room) -> None:
    assert names.keys(Slice((7,), after="99", limit=2)) == [lamp(7, "A"), lamp(7, "B")]


def test_limit_bounds_the_rows(names: Room) -> None:
    assert names.keys(Slice((7,), limit=3)) == [lamp(7, name) for name in NAMES[:3]]
    assert names.keys(Slice((7,), limit=1000)) == [lamp(7, name) for name in NAMES]


def test_limit_counts_only_rows_that_exist(room: Room) -> None:
    room.set(lamp(1), {"holder": "ada"})
    room.put(lamp(2))
    room.put(lamp(3))
    room.set(lamp(1), {"holder": None})

    assert room.keys(Slice(limit=1)) == [lamp(2)]


def test_among_shows_its_rows_in_their_order(names: Room) -> None:
    assert names.keys(Slice((7,), among=("a", "b", "🙂", "A", "a"))) == [lamp(7, "A"), lamp(7, "a"), lamp(7, "🙂")]
    assert names.keys(Slice(among=(8, 5, 6))) == [lamp(6), lamp(8)]
    assert names.keys(Slice(among=(8, 6), limit=1)) == [lamp(6)]


def test_slices_are_answered_one_after_the_other(names: Room) -> None:
    slices = [Slice((8,)), Slice((7, "9")), Slice((9,)), Slice((6,)), Slice((7,), after="🙂"), Slice((8,))]

    assert names.keys(*slices) == [lamp(8), lamp(7, "9"), lamp(6), lamp(7, NAMES[-1]), lamp(8)]


BAD_SLICES: list[Slice] = [
    Slice((1, "a", "b")),
    Slice((1, "a"), after="b"),
    Slice((1, "a"), among=("b",)),
    Slice(("1",)),
    Slice((1, 1)),
    Slice((None,)),
    Slice((2**31,)),
    Slice(after="1"),
    Slice((1,), after=1),
    Slice(among=(1, None)),
    Slice(ttl_of="shelf"),
    Slice(ttl_of="nothing"),
]


@pytest.mark.parametrize("bad", BAD_SLICES, ids=str)
def test_slice_that_the_table_cannot_have_is_an_error(room: Room, bad: Slice) -> None:
    with pytest.raises(ValueError, match="lamps"):
        room.rows(bad)


@pytest.mark.parametrize("bad", [(), (UUID(int=1),), (UUID(int=1), None), ("hall", UUID(int=1)), (1, "hall")], ids=str)
def test_partition_that_the_table_cannot_have_is_an_error(room: Room, bad: Key) -> None:
    with pytest.raises(ValueError, match="lamps"):
        room.face.run(room.port.read(LAMPS, bad, (Slice(),), serial=False))

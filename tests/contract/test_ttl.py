"""TTLs: what ends, what stays, what a renewal moves. Each test waits once, for all that it has put there.

A TTL of one second may end in the next millisecond, as Cassandra counts whole seconds: what must live on has two.
"""

from __future__ import annotations

from contract.rooms import Room, lamp

from slotkeeper.database import Applied, Refused, Row, Slice, Write, delete, insert, update

ONE, TWO, THREE, FOUR = lamp(1), lamp(2), lamp(3), lamp(4)
ADA, BEN = {"holder": "ada"}, {"holder": "ben"}
LONG_S = 100_000


def test_cell_ends_while_its_sibling_without_a_ttl_stays(room: Room) -> None:
    room.put(ONE, {"slot": 1})
    room.must(
        update(ONE, ADA, expect={"slot": (1,)}, ttl_s=1),
        update(ONE, {"version": 5}),
        insert(TWO, ADA, absent=True, ttl_s=1),
        update(THREE, {"holder": "ada", "slot": 3}, ttl_s=1),
        update(FOUR, ADA, ttl_s=1),
        update(FOUR, {"slot": 4}),
    )

    room.until(lambda: not room.rows(Slice((1,)))[0]["holder"])

    assert room.rows(Slice((1,)))[0]["version"] == 5
    room.until(lambda: room.state() == {ONE: {"slot": 1, "version": 5}, FOUR: {"slot": 4}})


def test_null_of_an_ended_cell_meets_the_guard_of_a_free_slot(room: Room) -> None:
    room.put(ONE, {"slot": 1, "version": 5})
    room.set(ONE, ADA, ttl_s=1)
    take = update(ONE, BEN, expect={"holder": ("free", None), "version": (5,)})

    room.until(lambda: room.commit(take) == Applied())

    assert room.state() == {ONE: {"holder": "ben", "slot": 1, "version": 5}}


def test_end_of_an_inserted_row_frees_its_place(room: Room) -> None:
    room.must(
        insert(ONE, ADA, absent=True, ttl_s=1),
        insert(TWO, {}, absent=True, ttl_s=1),
        update(THREE, ADA, ttl_s=1),
    )
    again = [insert(key, BEN, absent=True) for key in (ONE, TWO, THREE)]

    room.until(lambda: room.commit(*again) == Applied())

    assert room.state() == {ONE: BEN, TWO: BEN, THREE: BEN}


def test_row_that_ended_is_not_shown(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, ADA, ttl_s=1)
    room.set(THREE, ADA, ttl_s=1)
    guards = [update(key, {"slot": 1}, expect={"holder": ("ben",)}) for key in (ONE, TWO, THREE)]

    room.until(lambda: room.shown(*guards).keys() == {ONE})


def test_inserted_row_without_a_ttl_outlives_its_values(room: Room) -> None:
    room.put(ONE)
    room.set(ONE, ADA, ttl_s=1)

    room.until(lambda: room.state() == {ONE: {}})

    assert isinstance(room.commit(insert(ONE, BEN, absent=True)), Refused)


def test_update_outlives_the_row_that_was_inserted_with_a_ttl(room: Room) -> None:
    room.put(ONE, ADA, ttl_s=1)
    room.set(ONE, {"slot": 1})

    room.until(lambda: room.state() == {ONE: {"slot": 1}})

    room.set(ONE, {"slot": None})
    assert room.state() == {}


def test_insert_with_a_ttl_limits_a_row_that_had_none(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, {"holder": "ada", "slot": 2})
    room.must(insert(ONE, BEN, ttl_s=1), insert(TWO, BEN, ttl_s=1), _guard())

    room.until(lambda: room.state() == {TWO: {"slot": 2}})


def test_writing_again_renews(room: Room) -> None:
    """The row that nobody renews ends last of all that were written with its TTL: what then lives was renewed."""
    room.must(*(insert(key, ADA, absent=True, ttl_s=2) for key in (ONE, TWO, THREE)))
    room.must(
        insert(ONE, ADA, ttl_s=LONG_S),
        update(TWO, ADA, expect={"holder": ("ada",)}, ttl_s=LONG_S),
        insert(FOUR, ADA, ttl_s=2),
    )

    room.until(lambda: not {THREE, FOUR} & room.state().keys())

    assert room.state() == {ONE: ADA, TWO: ADA}


def test_writing_without_a_ttl_takes_the_ttl_off(room: Room) -> None:
    room.must(insert(ONE, ADA, absent=True, ttl_s=2), update(TWO, ADA, ttl_s=2))
    room.must(insert(ONE, ADA), update(TWO, ADA), insert(THREE, ADA, absent=True, ttl_s=2))

    room.until(lambda: THREE not in room.state())

    assert room.state() == {ONE: ADA, TWO: ADA}
    assert [row["ttl(holder)"] for row in room.rows(Slice(ttl_of="holder"))] == [None, None]


def test_renewed_update_does_not_renew_the_mark_of_the_insert(room: Room) -> None:
    room.must(insert(ONE, ADA, absent=True, ttl_s=2))
    room.must(update(ONE, ADA, expect={"holder": ("ada",)}, ttl_s=LONG_S), insert(TWO, ADA, absent=True, ttl_s=2))
    room.until(lambda: TWO not in room.state())

    room.must(update(ONE, {"holder": None}, expect={"holder": ("ada",)}))

    assert room.state() == {}


def test_slice_tells_how_long_a_cell_still_lives(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1}, ttl_s=LONG_S)
    room.put(TWO, ADA)
    room.put(THREE)
    room.set(THREE, {"slot": 3}, ttl_s=LONG_S)

    def lives(row: Row, column: str) -> bool:
        return row[f"ttl({column})"] in range(LONG_S - 60, LONG_S + 1)

    one, two, three = room.rows(Slice(ttl_of="holder"))
    assert lives(one, "holder")
    assert two["ttl(holder)"] is None
    assert three["ttl(holder)"] is None
    one, two, three = room.rows(Slice(ttl_of="slot"))
    assert lives(one, "slot")
    assert two["ttl(slot)"] is None
    assert lives(three, "slot")


def test_ttl_of_an_ended_cell_is_null(room: Room) -> None:
    room.put(ONE)
    room.set(ONE, ADA, ttl_s=1)

    room.until(lambda: room.state() == {ONE: {}})

    (row,) = room.rows(Slice(ttl_of="holder"))
    assert row["ttl(holder)"] is None


def _guard() -> Write:
    return delete(lamp(99), expect={"holder": (None,)})

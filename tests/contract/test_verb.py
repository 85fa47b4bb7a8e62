"""The verb: what each kind of guard lets through, what a refusal shows, and that nothing is ever done by halves."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from contract.rooms import UNMET, Room, lamp

from slotkeeper.database import Applied, Refused, Value, Write, delete, insert, update

ONE, TWO, THREE = lamp(1), lamp(2), lamp(3)
ADA, BEN = {"holder": "ada"}, {"holder": "ben"}

Expected = Mapping[str, tuple[Value, ...]]

MET_BY_ADA: list[Expected] = [
    {"holder": ("ada",)},
    {"holder": ("ben", "ada")},
    {"holder": ("ada", None)},
    {"holder": (None, "ada")},
    {"holder": ("ada", "ada")},
    {"slot": (None,)},
    {"slot": (7, None)},
    {"holder": ("ada",), "slot": (None,)},
    {"holder": ("ben", "ada"), "slot": (None, 7), "version": (None,)},
]
UNMET_BY_ADA: list[Expected] = [
    {"holder": ("ben",)},
    {"holder": (None,)},
    {"holder": ("ben", None)},
    {"holder": ("",)},
    {"holder": ("Ada",)},
    {"holder": ()},
    {"slot": (7,)},
    {"holder": ("ada",), "slot": (7,)},
    {"holder": ("ben",), "slot": (None,)},
]
MET_BY_NOTHING: list[Expected] = [
    {"holder": (None,)},
    {"holder": ("ada", None)},
    {"holder": (None,), "slot": (None,), "version": (None, 5)},
]
UNMET_BY_NOTHING: list[Expected] = [
    {"holder": ("ada",)},
    {"holder": ("ada", "ben")},
    {"holder": ("",)},
    {"slot": (0,)},
    {"holder": (None,), "slot": (0,)},
    {"holder": ()},
]


# Guards on columns


@pytest.mark.parametrize("expect", MET_BY_ADA)
def test_guard_that_the_row_meets_lets_an_update_through(room: Room, expect: Expected) -> None:
    room.put(ONE, ADA)

    assert room.commit(update(ONE, BEN, expect=expect)) == Applied()
    assert room.state() == {ONE: BEN}


@pytest.mark.parametrize("expect", UNMET_BY_ADA)
def test_guard_that_the_row_does_not_meet_changes_nothing(room: Room, expect: Expected) -> None:
    room.put(ONE, ADA)

    assert isinstance(room.commit(update(ONE, BEN, expect=expect)), Refused)
    assert isinstance(room.commit(delete(ONE, expect=expect)), Refused)
    assert room.state() == {ONE: ADA}


@pytest.mark.parametrize("expect", MET_BY_NOTHING)
def test_missing_row_shows_null_to_a_guard_and_an_update_brings_it_into_being(room: Room, expect: Expected) -> None:
    assert room.commit(update(ONE, BEN, expect=expect)) == Applied()
    assert room.state() == {ONE: BEN}


@pytest.mark.parametrize("expect", UNMET_BY_NOTHING)
def test_missing_row_meets_no_guard_that_asks_for_a_value(room: Room, expect: Expected) -> None:
    assert room.commit(update(ONE, BEN, expect=expect)) == Refused({})
    assert room.state() == {}


@pytest.mark.parametrize("expect", MET_BY_NOTHING)
def test_row_whose_cells_are_null_meets_the_guards_that_a_missing_one_meets(room: Room, expect: Expected) -> None:
    room.put(ONE)

    assert room.commit(update(ONE, BEN, expect=expect)) == Applied()
    assert room.state() == {ONE: BEN}


@pytest.mark.parametrize("expect", UNMET_BY_NOTHING)
def test_row_whose_cells_are_null_meets_no_guard_that_asks_for_a_value(room: Room, expect: Expected) -> None:
    room.put(ONE, {"holder": None})

    assert isinstance(room.commit(update(ONE, BEN, expect=expect)), Refused)
    assert room.state() == {ONE: {}}


def test_guard_may_name_the_column_that_the_update_sets(room: Room) -> None:
    room.put(ONE, {"slot": 1})

    assert room.commit(update(ONE, {"slot": 2}, expect={"slot": (1,)})) == Applied()
    assert isinstance(room.commit(update(ONE, {"slot": 2}, expect={"slot": (1,)})), Refused)
    assert room.state() == {ONE: {"slot": 2}}


def test_update_leaves_the_columns_that_it_does_not_name(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1, "body": b"x"})

    room.must(update(ONE, {"slot": None}, expect={"holder": ("ada",)}))

    assert room.state() == {ONE: {"holder": "ada", "body": b"x"}}


def test_guarded_delete_takes_the_whole_row(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1})

    assert room.commit(delete(ONE, expect={"holder": ("ada",)})) == Applied()
    assert room.state() == {}


def test_guarded_delete_of_a_missing_row_applies_when_null_is_expected(room: Room) -> None:
    assert room.commit(delete(ONE, expect={"holder": (None,)})) == Applied()
    assert room.commit(delete(ONE, expect={"holder": ("ada",)})) == Refused({})


# Guards on existence


def test_insert_that_asks_for_absence_makes_the_row_once(room: Room) -> None:
    assert room.commit(insert(ONE, ADA, absent=True)) == Applied()
    assert isinstance(room.commit(insert(ONE, BEN, absent=True)), Refused)
    assert room.state() == {ONE: ADA}


def test_inserted_row_exists_with_all_its_values_null(room: Room) -> None:
    room.must(insert(ONE, {}, absent=True))

    assert room.state() == {ONE: {}}
    assert isinstance(room.commit(insert(ONE, ADA, absent=True)), Refused)


def test_inserted_row_outlives_the_nulling_of_its_values(room: Room) -> None:
    room.put(ONE, ADA)
    room.must(update(ONE, {"holder": None}, expect=_expect(ADA)))

    assert room.state() == {ONE: {}}
    assert isinstance(room.commit(insert(ONE, BEN, absent=True)), Refused)


def test_row_made_by_an_update_ends_with_its_last_value(room: Room) -> None:
    room.set(ONE, {"holder": "ada", "slot": 1})
    room.must(update(ONE, {"holder": None}, expect=_expect(ADA)))
    assert room.state() == {ONE: {"slot": 1}}

    room.must(update(ONE, {"slot": None}, expect={"slot": (1,)}))

    assert room.state() == {}
    assert room.commit(insert(ONE, BEN, absent=True)) == Applied()


def test_update_that_sets_only_null_makes_no_row(room: Room) -> None:
    room.must(update(ONE, {"holder": None}, expect={"holder": (None,)}))

    assert room.state() == {}
    assert room.commit(insert(ONE, ADA, absent=True)) == Applied()


def test_plain_insert_writes_over_what_is_there_and_keeps_the_other_columns(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1})
    room.put(ONE, {"holder": "ben"})

    assert room.state() == {ONE: {"holder": "ben", "slot": 1}}


def test_plain_insert_makes_a_row_of_updates_stay(room: Room) -> None:
    room.set(ONE, ADA)
    room.put(ONE)
    room.set(ONE, {"holder": None})

    assert room.state() == {ONE: {}}


# Several writes


def test_one_guard_that_fails_undoes_the_whole_batch(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, BEN)
    room.put(lamp(7), BEN)
    before = room.state()
    batch = [
        update(ONE, {"slot": 1}, expect=_expect(ADA)),
        delete(TWO, expect=_expect(BEN)),
        insert(THREE, ADA, absent=True),
        insert(lamp(4), ADA),
        update(lamp(5), ADA),
        delete(lamp(7)),
        update(lamp(6), ADA, expect=UNMET),
    ]

    for turn in range(len(batch)):
        assert isinstance(room.commit(*batch[turn:], *batch[:turn]), Refused)
        assert room.state() == before


def test_guards_of_every_kind_hold_together(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, BEN)

    room.must(
        update(ONE, {"slot": 1}, expect=_expect(ADA)),
        delete(TWO, expect=_expect(BEN)),
        insert(THREE, ADA, absent=True),
        insert(lamp(4), ADA),
        update(lamp(5), BEN),
    )

    assert room.state() == {ONE: {"holder": "ada", "slot": 1}, THREE: ADA, lamp(4): ADA, lamp(5): BEN}


def test_every_guard_sees_the_state_before_the_batch(room: Room) -> None:
    room.put(ONE, ADA)

    room.must(
        update(ONE, BEN, expect=_expect(ADA)),
        update(ONE, {"slot": 1}, expect=_expect(ADA)),
        insert(TWO, {}, absent=True),
        update(TWO, ADA),
    )

    assert room.state() == {ONE: {"holder": "ben", "slot": 1}, TWO: ADA}


def test_guards_of_one_row_must_all_hold(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1})

    def both(holder: str, slot: int) -> tuple[Write, Write]:
        return (
            update(ONE, {"total": 1}, expect={"holder": (holder,)}),
            update(ONE, {"body": b"x"}, expect={"slot": (slot,)}),
        )

    assert isinstance(room.commit(*both("ada", 2)), Refused)
    assert isinstance(room.commit(*both("ben", 1)), Refused)
    assert room.commit(*both("ada", 1)) == Applied()


def test_guards_of_one_row_that_contradict_each_other_refuse(room: Room) -> None:
    room.put(ONE, ADA)
    ada, ben = (
        update(ONE, {"slot": 1}, expect=_expect(ADA)),
        update(ONE, {"total": 1}, expect=_expect(BEN)),
    )

    assert isinstance(room.commit(ada, ben), Refused)
    assert isinstance(room.commit(ben, ada), Refused)
    assert room.state() == {ONE: ADA}


def test_delete_without_a_guard_rides_along(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, BEN)

    assert isinstance(room.commit(delete(TWO), update(ONE, BEN, expect=UNMET)), Refused)
    assert room.state() == {ONE: ADA, TWO: BEN}
    assert room.commit(delete(TWO), delete(THREE), update(ONE, BEN, expect=_expect(ADA))) == Applied()
    assert room.state() == {ONE: BEN}


def test_batch_holds_150_writes(room: Room) -> None:
    keys = {number: lamp(number) for number in range(150)}
    room.must(*(insert(key, {"slot": number}, absent=True) for number, key in keys.items()))
    assert room.state() == {key: {"slot": number} for number, key in keys.items()}

    shown = room.shown(*(update(key, ADA, expect={"slot": (number % 149,)}) for number, key in keys.items()))

    assert shown.keys() == set(keys.values())
    room.must(*(update(key, ADA, expect={"slot": (number,)}) for number, key in keys.items()))
    assert all(values["holder"] == "ada" for values in room.state().values())


def test_partitions_know_nothing_of_each_other(room: Room) -> None:
    cellar = room.elsewhere("cellar")
    room.put(ONE, ADA)

    assert cellar.commit(insert(ONE, BEN, absent=True)) == Applied()
    cellar.must(delete(ONE, expect=_expect(BEN)))

    assert room.state() == {ONE: ADA}
    assert cellar.state() == {}


# Refusals


def test_refusal_shows_the_guarded_rows_that_exist_and_no_others(room: Room) -> None:
    room.put(ONE, ADA)
    room.put(TWO, BEN)
    room.put(THREE, ADA)
    room.put(lamp(4), BEN)

    shown = room.shown(
        update(TWO, ADA, expect=_expect(BEN)),  # holds
        update(ONE, BEN, expect=UNMET),  # does not
        insert(THREE, BEN, absent=True),
        insert(lamp(4), ADA),  # rides along
        insert(lamp(5), ADA, absent=True),  # holds: missing
        update(lamp(6), ADA, expect=_expect(BEN)),  # missing
    )

    assert {key: row["holder"] for key, row in shown.items()} == {ONE: "ada", TWO: "ben", THREE: "ada"}


def test_refusal_shows_the_key_and_the_columns_that_the_guards_name(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "version": 1_700_000_000_001, "slot": None})

    shown = room.shown(update(ONE, BEN, expect={"holder": ("ben",), "version": (5,), "slot": (None,)}))

    assert {column: shown[ONE][column] for column in ("shelf", "name", "holder", "version", "slot")} == {
        "shelf": 1,
        "name": "",
        "holder": "ada",
        "version": 1_700_000_000_001,
        "slot": None,
    }


def test_refusal_shows_a_row_that_exists_without_values(room: Room) -> None:
    room.put(ONE)

    assert room.shown(update(ONE, BEN, expect=UNMET))[ONE]["holder"] is None
    assert ONE in room.shown(insert(ONE, BEN, absent=True))


def test_refusal_shows_the_state_before_the_batch(room: Room) -> None:
    room.put(ONE, ADA)

    shown = room.shown(update(ONE, BEN, expect=_expect(ADA)), update(TWO, BEN, expect=UNMET))

    assert shown.keys() == {ONE}
    assert shown[ONE]["holder"] == "ada"


def test_refusal_shows_one_row_for_all_guards_on_it(room: Room) -> None:
    room.put(ONE, {"holder": "ada", "slot": 1})

    shown = room.shown(
        update(ONE, {"total": 1}, expect=_expect(ADA)), update(ONE, {"body": b"x"}, expect={"slot": (2,)})
    )

    assert (shown[ONE]["holder"], shown[ONE]["slot"]) == ("ada", 1)


def _expect(values: Mapping[str, Value]) -> Expected:
    return {column: (value,) for column, value in values.items()}

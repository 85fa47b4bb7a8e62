"""The values, the clock, and the choice of a task: pure, without a store."""

from __future__ import annotations

import doctest
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from taskstores import SECOND_NS, START_NS, Hands

from slotkeeper import taskstore
from slotkeeper.taskstore import Task
from slotkeeper.taskstore.group import MOST_PASSED, Group
from slotkeeper.taskstore.record import Keyed, Record, decode, encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TASKS = st.builds(
    Task,
    st.integers(1, 2**53),
    TEXT,
    TEXT,
    st.integers(0, 2**63 - 1),
    st.binary(max_size=50),
    st.integers(0, 2**31),
    st.integers(0, 2**31),
    TEXT,
)
RECORDS = st.builds(
    Record,
    st.integers(0, 2**62),
    st.integers(0, 2**53),
    st.lists(st.integers(1, 2**53), max_size=4).map(tuple),
    st.lists(TASKS, max_size=3).map(tuple),
    st.lists(st.builds(Keyed, TEXT, st.integers(0, 2**62), TASKS), max_size=2).map(tuple),
)


@given(TASKS)
def test_a_task_is_spelled_and_read_again(task: Task) -> None:
    assert Task.parse(str(task)) == task
    assert "\n" not in str(task)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"id": 1}', "nonsense", '{"id": "x"}', b"\xff"])
def test_what_is_no_task_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="no task"):
        Task.parse(text)


def test_a_task_shows_no_data_in_a_log() -> None:
    shown = repr(Task(7, "g", "me", 5, b"secret", error="boom", attempt=2))

    assert "secret" not in shown
    for said in ("7", "'g'", "6 bytes", "boom"):
        assert said in shown


@given(RECORDS)
def test_a_record_is_written_and_read_again(record: Record) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize("written", [b"", b"\x00", b"nonsense", encode(Record(1, 2))[:-1]])
def test_what_is_no_record_is_refused(written: bytes) -> None:
    with pytest.raises(ValueError, match="no record"):
        decode(written)


def test_the_example_of_the_package_runs() -> None:
    results = doctest.testmod(taskstore)

    assert results.attempted >= 2
    assert results.failed == 0


# --- the clock --------------------------------------------------------------------------------------------------------


def test_a_step_of_the_wall_clock_is_not_felt() -> None:
    hands = Hands()
    clock = hands.clock()
    for step_s in (3600, -7200):
        before = clock.now_ns()
        hands.wall_ns += step_s * SECOND_NS
        hands.go_on(10)
        passed_s = (clock.now_ns() - before) / SECOND_NS
        assert 9.98 < passed_s < 10.02


def test_the_wall_clock_is_approached_slowly() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_ns += SECOND_NS
    for _ in range(1_102):
        hands.go_on(1)
        clock.now_ns()

    assert clock.now_ns() == hands.wall_ns


def test_a_clock_starts_no_earlier_than_what_was_written_down() -> None:
    hands = Hands()
    clock = hands.clock()
    clock.start_from(START_NS + 500)
    assert clock.now_ns() == START_NS + 500
    clock.start_from(START_NS)
    assert clock.now_ns() == START_NS + 500


@given(st.lists(st.tuples(st.integers(0, 5 * SECOND_NS), st.integers(-(10**13), 10**13)), max_size=30))
def test_the_clock_only_goes_forward(moves: list[tuple[int, int]]) -> None:
    hands = Hands()
    clock, last = hands.clock(), 0
    for steady, wall in moves:
        hands.steady_ns += steady
        hands.wall_ns += wall
        assert clock.now_ns() >= last
        last = clock.now_ns()


# --- the choice ---------------------------------------------------------------------------------------------------------


def group_of(*ages: int) -> Group:
    group = Group()
    for task_id, age in enumerate(ages, start=1):
        group.add(Task(task_id, "g", "", age))
    return group


def test_the_choice_is_random_and_favours_the_oldest() -> None:
    group, dice = group_of(*range(7)), random.Random(7).random
    chosen = Counter(task.id for _ in range(20_000) if (task := group.pick(100, dice)))

    assert 0.31 < chosen[1] / 20_000 < 0.37
    assert all(0.09 < chosen[task_id] / 20_000 < 0.13 for task_id in range(2, 8))


def test_only_what_is_available_is_chosen() -> None:
    group, dice = group_of(5, 50, 6, 60, 7), random.Random(7).random

    assert {task.id for _ in range(500) if (task := group.pick(10, dice))} == {1, 3, 5}
    assert group.pick(4, dice) is None
    assert Group().pick(4, dice) is None


def test_the_oldest_is_never_passed_over_for_ever() -> None:
    group = group_of(1, *[2] * 200)
    worst = [0.99]  # always on, to the last child

    for turn in range(MOST_PASSED + 1):
        task = group.pick(10, lambda: worst[0])
        assert task is not None
        if task.id == 1:
            assert turn == MOST_PASSED
            return
        group.drop(task.id)
    pytest.fail("the oldest was passed over")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=150), st.randoms(use_true_random=False))
def test_a_group_forgets_what_is_gone(steps: list[tuple[bool, int]], lots: random.Random) -> None:
    group, there, next_id = Group(), dict[int, int](), 1
    for adds, age in steps:
        if adds or not there:
            group.add(Task(next_id, "g", "", age))
            there[next_id] = age
            next_id += 1
        else:
            gone = lots.choice(sorted(there))
            group.drop(gone)
            del there[gone]
        assert group.first_at_ns() == min(there.values(), default=None)
        task = group.pick(10, lots.random)
        assert (task is None) == (not any(age <= 10 for age in there.values()))
        assert task is None or there[task.id] <= 10
    assert len(group.heap) <= 2 * len(group.members) + 65


def test_groups_are_chosen_fairly_whatever_their_sizes() -> None:
    with taskstore.TaskStore(dice=random.Random(3).random) as store:
        store.update("me", adds=[taskstore.Add("full") for _ in range(500)] + [taskstore.Add("few")])
        got = Counter[str]()
        for _ in range(300):
            task = store.claim("w", ["full", "few", "empty"], 60)
            assert task is not None
            got[task.group] += 1
            store.release("w", task)

    assert 110 < got["few"] < 190

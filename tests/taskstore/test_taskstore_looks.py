"""What a look at a group shows, however the group came to be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slotkeeper.taskstore import Task, looks
from slotkeeper.taskstore.group import Group
from slotkeeper.taskstore.record import Record
from slotkeeper.taskstore.state import State

NOW_NS = 10
TIMES = st.lists(st.integers(0, 20), max_size=60)


def state_of(times: list[int], gone: set[int]) -> State:
    """Return a state with tasks of one group, some of which are gone again; the last of those are back, as after an undo."""
    state = State()
    for task_id, at_ns in enumerate(times, 1):
        state.apply(Record(0, task_id, (), (Task(task_id, "g", "me", at_ns),)))
    for task_id in sorted(gone):
        record = Record(0, len(times), (task_id,), ())
        back = state.apply(record)
        if task_id % 3 == 0:
            state.undo(record, back)
    return state


@given(TIMES, st.sets(st.integers(1, 60)))
def test_the_oldest_come_first_however_many_are_asked_for(times: list[int], gone: set[int]) -> None:
    state = state_of(times, {task_id for task_id in gone if task_id <= len(times)})
    tasks = sorted(state.tasks.values(), key=lambda task: (task.available_at_ns, task.id))

    for owned in (True, False):
        wanted = [task for task in tasks if owned or task.available_at_ns <= NOW_NS]
        for limit in (None, 0, 1, 2, 7, 59, 1000):
            shown = looks.group("g", limit, owned=owned).see(state, NOW_NS)
            assert shown == (wanted[:limit] if limit else wanted)
    assert looks.every_task().see(state, NOW_NS) == sorted(tasks, key=lambda task: task.id)


@given(TIMES)
def test_a_group_is_as_it_was_after_a_look(times: list[int]) -> None:
    group = Group()
    for task_id, at_ns in enumerate(times, 1):
        group.add(Task(task_id, "g", "me", at_ns))
    before = list(group.heap)

    assert len(list(group.oldest())) == len(times)
    assert group.heap == before

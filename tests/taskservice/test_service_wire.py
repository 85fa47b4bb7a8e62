"""The JSON between service and client: whatever leaves comes in as the same."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slotkeeper.taskstore import Add, Change, Task, UpdateError
from slotkeeper.taskstore.wire import (
    Answer,
    Broken,
    TaskDocument,
    UpdateRequest,
    client_of,
    decoded,
    nanoseconds,
    owner_of,
    seconds,
)

TEXT = st.text(max_size=20)
OWNERS = TEXT | st.integers(-(2**70), 2**70).map(str)
IDS = st.integers(0, 2**63 - 1)
DATA = st.binary(max_size=20) | TEXT.map(str.encode)
YEAR_NS = 365 * 24 * 3600 * 1_000_000_000


def through_json(value: object, kind: type[msgspec.Struct]) -> object:
    """Send a value."""
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


@given(st.builds(Task, IDS, TEXT, OWNERS, IDS, DATA, IDS, IDS, TEXT))
@example(Task(1, "g", "7", 5, b"\xff"))
def test_a_task_stays_what_it_is(task: Task) -> None:
    document = through_json(TaskDocument.of(task), TaskDocument)

    assert isinstance(document, TaskDocument)
    assert document.task() == task
    assert document.timespec == task.available_at_ns // 1_000_000
    assert (document.data is msgspec.UNSET) != (document.data_base64 is msgspec.UNSET)


# As callers make them: durations of whole nanoseconds, less than a hundred days.
SECONDS = st.integers(0, YEAR_NS // 4).map(lambda ns: ns / 1e9)


@given(
    OWNERS,
    st.lists(st.builds(Add, TEXT, DATA, IDS, key=st.none() | TEXT) | st.builds(Add, TEXT, DATA, after_s=SECONDS)),
    st.lists(
        st.builds(
            Change, IDS, st.none() | DATA, IDS, group=st.none() | TEXT, attempt=st.none() | IDS, error=st.none() | TEXT
        )
        | st.builds(Change, IDS, after_s=SECONDS)
    ),
    st.lists(IDS),
    st.lists(IDS),
)
def test_an_update_stays_what_it_is(
    owner: str, adds: list[Add], changes: list[Change], deletes: list[int], depends: list[int]
) -> None:
    body = msgspec.json.encode(UpdateRequest.of(owner, adds, changes, deletes, depends))

    asked = decoded(body, UpdateRequest)

    assert owner_of(asked.clientid) == owner
    assert (list(asked.deletes or ()), list(asked.depends or ())) == (deletes, depends)
    got_adds, got_changes = asked.values()
    assert [_in_ns(add) for add in got_adds] == [_in_ns(add) for add in adds]
    assert [_in_ns(change) for change in got_changes] == [_in_ns(change) for change in changes]


def _in_ns(asked: Add | Change) -> object:
    """Return what a store makes of it: a time in whole nanoseconds."""
    return {**msgspec.structs.asdict(asked), "after_s": int(asked.after_s * 1_000_000_000)}


@given(st.integers(0, 2**53))
def test_no_nanosecond_is_lost(ns: int) -> None:
    assert 0 <= int(seconds(ns) * 1_000_000_000) - ns <= 1
    if ns < 2**50:
        assert int(seconds(ns) * 1_000_000_000) == ns


@pytest.mark.parametrize("after_s", [math.inf, -math.inf, math.nan, 1e300])
def test_a_time_that_is_none_is_refused_by_the_store_and_not_taken_for_now(after_s: float) -> None:
    body = msgspec.json.encode(UpdateRequest.of("me", [Add("g", after_s=after_s)], [], [], []))

    [add], _ = decoded(body, UpdateRequest).values()

    assert add.after_s * 1e9 > 2**63


def test_durations_have_bounds() -> None:
    assert (nanoseconds(-1.0), nanoseconds(0.5), nanoseconds(math.inf)) == (0, 500_000_000, 2**70)
    assert (seconds(-5), seconds(2**90)) == (0.0, 2**70 / 1e9)


@given(OWNERS)
def test_an_owner_stays_what_it_is(owner: str) -> None:
    client = client_of(owner)

    assert owner_of(client) == owner
    assert isinstance(client, int) == (owner.isascii() and _is_canonical(owner))


def _is_canonical(text: str) -> bool:
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**64
    except ValueError:
        return False


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**4000])
def test_a_client_id_of_more_bits_is_a_bug(number: int) -> None:
    with pytest.raises(UpdateError, match="64 bits"):
        owner_of(number)


@given(st.lists(IDS), st.lists(IDS), st.lists(IDS), st.lists(IDS), st.lists(TEXT))
def test_a_refusal_stays_what_it_is(
    changes: list[int], deletes: list[int], depends: list[int], owned: list[int], bugs: list[str]
) -> None:
    error = UpdateError(changes=changes, deletes=deletes, depends=depends, owned=owned, bugs=bugs)

    answer = through_json(Answer(error=Broken.of(error)), Answer)

    assert isinstance(answer, Answer)
    assert answer.error is not None
    again = answer.error.as_error()
    assert vars(again) == vars(error)
    assert str(again) == str(error)

"""What a witness keeps: copies that are whole or not there, and few."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slotkeeper.locktable import Lock
from slotkeeper.locktable.node.copies import MOST_COPIES, Copies
from slotkeeper.locktable.node.errors import NoCopy
from slotkeeper.locktable.node.messages import Item

WHEN = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)


def lock(name: str, until: float = 130.0, request: str = "") -> Lock:
    """Return a lock."""
    return Lock(name, f"id of {name}", "n1", "job", WHEN, WHEN, until, 1, request)


def test_a_copy_grows_and_forgets_what_has_ended_or_was_released() -> None:
    now = [100.0]
    copies = Copies(lambda: now[0])
    copies.add("c", [lock("x"), lock("y", 110.0)], begins=True)
    copies.add("c", [lock("z", request="r"), lock("x", 140.0)], begins=False)
    copies.add("c", [lock("x")], begins=True)  # its first message came twice
    assert [(each.name, each.until) for each in copies.of("c")] == [("x", 140.0), ("y", 110.0), ("z", 130.0)]

    copies.let_go(Item("z", request="r"))
    now[0] = 110.0
    assert [each.name for each in copies.of("c")] == ["x"]
    copies.let_go(Item("x", "id of x"))

    assert copies.of("c") == []


def test_a_copy_that_is_not_there_is_not_begun_by_what_would_add_to_it() -> None:
    copies = Copies(lambda: 100.0)

    with pytest.raises(NoCopy):
        copies.add("c", [lock("x")], begins=False)
    with pytest.raises(NoCopy, match="Begin another"):
        copies.of("c")


def test_of_many_copies_the_oldest_is_given_up_for_good() -> None:
    copies = Copies(lambda: 100.0)
    for number in range(MOST_COPIES + 1):
        copies.add(f"c{number}", [lock("x")], begins=True)

    with pytest.raises(NoCopy):
        copies.add("c0", [lock("x")], begins=True)  # late, and not all that the copy had
    with pytest.raises(NoCopy):
        copies.of("c0")
    assert copies.of("c1") == [lock("x")]

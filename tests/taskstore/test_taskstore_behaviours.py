"""What a store does, on every journal and through both faces: the contract of the reference, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from taskstores import SECOND_NS, START_NS, DatabasePlace, Hands, Place, Tasks

from slotkeeper.taskstore import Add, Change, JournalLocked, OutcomeUnknown, StoreClosed, Task, UpdateError

Reopen = Callable[..., Tasks]


def test_adds_get_growing_ids_an_owner_and_the_time(tasks: Tasks) -> None:
    first, second = tasks.update("alice", adds=[Add("g", b"1"), Add("h", b"2", available_at_ns=START_NS - 7)])

    assert first == Task(1, "g", "alice", START_NS, b"1")
    assert second == Task(2, "h", "alice", START_NS - 7, b"2")
    assert tasks.groups() == ["g", "h"]
    assert tasks.group("nobody has this") == []


def test_a_future_add_is_born_owned(tasks: Tasks) -> None:
    (later,) = tasks.update("alice", adds=[Add("g", after_s=5)])

    assert later.available_at_ns == START_NS + 5 * SECOND_NS
    assert tasks.claim("alice", "g", 10) is None
    assert tasks.group("g") == []
    assert tasks.group("g", owned=True) == [later]
    with pytest.raises(UpdateError) as refused:
        tasks.update("bob", deletes=[later.id])
    assert refused.value.owned == (later.id,)
    assert tasks.update("alice", deletes=[later.id]) == []


def test_a_change_makes_a_new_task_and_keeps_what_it_does_not_name(tasks: Tasks) -> None:
    (task,) = tasks.update("alice", adds=[Add("g", b"data")])

    (kept,) = tasks.update("bob", changes=[Change(task.id)])
    (changed,) = tasks.update("bob", changes=[Change(kept.id, data=b"", available_at_ns=START_NS + 9)])

    assert (kept.id, kept.group, kept.owner, kept.data) == (2, "g", "bob", b"data")
    assert (changed.id, changed.data, changed.available_at_ns) == (3, b"", START_NS + 9)
    assert tasks.tasks([task.id, kept.id, changed.id]) == [None, None, changed]


def test_a_change_may_move_a_task_to_another_group(tasks: Tasks) -> None:
    (task,) = tasks.update("alice", adds=[Add("g/quarantine", b"data")])

    tasks.update("alice", changes=[Change(task.id, group="g", attempt=0, error="")])

    assert tasks.groups() == ["g"]


def test_all_or_nothing_and_every_broken_precondition_is_told(tasks: Tasks) -> None:
    mine, theirs = tasks.update("alice", adds=[Add("g"), Add("g", after_s=60)])

    with pytest.raises(UpdateError) as refused:
        tasks.update(
            "bob",
            adds=[Add("g"), Add("")],
            changes=[Change(70), Change(theirs.id)],
            deletes=[80, mine.id],
            depends=[90, theirs.id],
        )

    error = refused.value
    assert (error.changes, error.deletes, error.depends, error.owned) == ((70,), (80,), (90,), (theirs.id,))
    assert len(error.bugs) == 1
    assert "group" in error.bugs[0]
    for said in ("70", "80", "90", str(theirs.id)):
        assert said in str(error)
    assert tasks.every_task() == [mine, theirs]


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"depends": [1]},
        {"adds": [Add("g", "text")]},  # type: ignore[arg-type]
        {"adds": [Add("g", after_s=float("nan"))]},
        {"adds": [Add("g", available_at_ns=2**63)]},
        {"adds": [Add("g", available_at_ns=5, after_s=5)]},
        {"adds": [Add("g", key="")]},
        {"adds": [Add("g", key="k"), Add("g", key="k")]},
        {"adds": [Add("\ud800")]},
        {"changes": [Change(1), Change(1)]},
        {"changes": [Change(1)], "deletes": [1]},
        {"deletes": [1, 1]},
        {"changes": [Change(1, attempt=-1)]},
        {"changes": [Change(1, group="")]},
    ],
)
def test_what_no_state_allows_is_a_bug(tasks: Tasks, request_: dict[str, object]) -> None:
    tasks.update("alice", adds=[Add("g")])

    with pytest.raises(UpdateError) as refused:
        tasks.update("alice", **request_)

    assert len(refused.value.bugs) == 1
    assert len(tasks.every_task()) == 1


def test_the_owner_may_act_after_its_time_as_long_as_nobody_else_did(tasks: Tasks, hands: Hands) -> None:
    tasks.update("me", adds=[Add("g")])
    claimed = tasks.claim("alice", "g", 10)
    hands.go_on(11)

    renewed = tasks.renew("alice", claimed, 10)
    hands.go_on(11)
    (taken,) = tasks.update("bob", changes=[Change(renewed.id, after_s=10)])

    assert (renewed.owner, taken.owner) == ("alice", "bob")
    for gone in (claimed, renewed):
        with pytest.raises(UpdateError) as refused:
            tasks.update("alice", deletes=[gone.id])
        assert refused.value.deletes == (gone.id,)


def test_a_claim_owns_a_task_for_a_while(tasks: Tasks, hands: Hands) -> None:
    tasks.update("me", adds=[Add("g", b"x")])

    claimed = tasks.claim("alice", ["g"], 10)

    assert claimed == Task(2, "g", "alice", START_NS + 10 * SECOND_NS, b"x", 1, 1)
    assert tasks.claim("bob", "g", 10) is None
    assert tasks.claim("alice", "g", 10) is None  # renew it instead
    hands.go_on(10)
    assert tasks.claim("bob", "g", 10).claims == 2


def test_nothing_to_claim_is_none(tasks: Tasks) -> None:
    assert tasks.claim("alice", ["no", "such"], 10) is None
    tasks.update("me", adds=[Add("g", after_s=1)])
    assert tasks.claim("alice", "g", 10) is None


def test_a_claim_for_no_time_leaves_the_task_to_everybody(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g")])

    assert tasks.claim("alice", "g", 0).owner == "alice"
    assert tasks.claim("bob", "g", -5).owner == "bob"


def test_an_absent_dependency_is_an_error_even_when_there_is_nothing_to_claim(tasks: Tasks) -> None:
    with pytest.raises(UpdateError) as refused:
        tasks.claim("alice", "g", 10, depends=[7])

    assert refused.value.depends == (7,)
    assert not refused.value.has_bugs


def test_a_dependency_only_has_to_exist(tasks: Tasks) -> None:
    theirs, mine = tasks.update("alice", adds=[Add("lock", after_s=60), Add("g")])

    assert tasks.claim("bob", "g", 10, depends=[theirs.id]) is not None
    (changed,) = tasks.update("alice", changes=[Change(theirs.id, after_s=60)], depends=[theirs.id])
    assert changed.group == "lock"
    assert tasks.task(mine.id) is None


def test_a_release_gives_a_task_back_unharmed(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g", b"x")])
    claimed = tasks.claim("alice", "g", 10)

    given = tasks.release("alice", claimed)

    assert (given.claims, given.attempt, given.data, given.available_at_ns) == (1, 0, b"x", START_NS)
    assert tasks.claim("bob", "g", 10).claims == 2


def test_a_release_with_an_error_counts_and_may_wait(tasks: Tasks, hands: Hands) -> None:
    tasks.update("me", adds=[Add("g")])

    tasks.release("alice", tasks.claim("alice", "g", 10), error="no luck", after_s=5)

    assert tasks.claim("bob", "g", 10) is None
    hands.go_on(5)
    claimed = tasks.claim("bob", "g", 10)
    assert (claimed.attempt, claimed.error) == (2, "no luck")


def test_only_the_owner_renews_or_releases(tasks: Tasks) -> None:
    (added,) = tasks.update("me", adds=[Add("g")])

    for refusal in (tasks.later("renew", "bob", added, 5), tasks.later("release", "bob", added)):
        (error,) = tasks.together(refusal)
        assert isinstance(error, UpdateError)
        assert error.owned == (added.id,)


def test_what_failed_too_often_goes_to_quarantine(open_tasks: Reopen) -> None:
    tasks = open_tasks(most_attempts=2)
    tasks.update("me", adds=[Add("g", b"poison")])

    for _ in range(2):
        last = tasks.release("alice", tasks.claim("alice", "g", 10), error="boom")

    assert (last.group, last.error, last.data) == ("g/quarantine", "boom", b"poison")
    assert tasks.claim("alice", "g", 10) is None
    assert tasks.claim("doctor", "g/quarantine", 10).attempt == 3


def test_what_kills_its_claimants_goes_to_quarantine_too(open_tasks: Reopen, hands: Hands) -> None:
    tasks = open_tasks(most_attempts=3)
    tasks.update("me", adds=[Add("g", b"poison", available_at_ns=1), Add("g", b"good")])

    claims = []
    for _ in range(8):
        claims.append(tasks.claim("alice", "g", 10))
        if claims[-1] is not None and claims[-1].data == b"good":
            tasks.update("alice", deletes=[claims[-1].id])
        hands.go_on(11)

    (aside,) = tasks.group("g/quarantine")
    assert (aside.data, aside.attempt) == (b"poison", 3)
    assert "3 times" in aside.error
    assert claims[-1] is None


def test_a_key_adds_once(tasks: Tasks) -> None:
    (first,) = tasks.update("alice", adds=[Add("g", b"x", key="order 7")])
    claimed = tasks.claim("bob", "g", 10)

    again, other = tasks.update("alice", adds=[Add("g", b"x", key="order 7"), Add("g", b"y", key="order 8")])

    assert again == first
    assert [task.id for task in tasks.group("g", owned=True)] == [other.id, claimed.id]
    assert tasks.update("alice", adds=[Add("g", b"x", key="order 7")]) == [first]
    with pytest.raises(UpdateError, match="another task"):
        tasks.update("alice", adds=[Add("g", b"z", key="order 7")])


def test_listings_show_the_oldest_first(tasks: Tasks) -> None:
    ages = [30, 10, 20, 40]
    tasks.update("me", adds=[Add("g", b"%d" % age, available_at_ns=START_NS - age) for age in ages])
    tasks.update("me", adds=[Add("g", b"later", after_s=1)])

    assert [task.data for task in tasks.group("g")] == [b"40", b"30", b"20", b"10"]
    assert [task.data for task in tasks.group("g", 2)] == [b"40", b"30"]
    assert [task.data for task in tasks.group("g", 9, owned=True)][-1] == b"later"


def test_stats_count_by_group(tasks: Tasks, hands: Hands) -> None:
    tasks.update("me", adds=[Add("g"), Add("g"), Add("g", after_s=60), Add("h")])
    tasks.claim("alice", "g", 10)
    hands.go_on(3)

    stats = tasks.stats()

    g = stats.groups["g"]
    assert (g.size, g.available, g.claimed, g.future) == (3, 1, 1, 1)
    assert 2.9 < g.oldest_s < 3.1
    assert (stats.size, stats.last_id, stats.strict, stats.waiting, stats.failure) == (4, 5, True, 0, "")


def test_everything_is_there_after_opening_again(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g", bytes(range(256)), key="k"), Add("ü", b""), Add("g", b"gone")])
    tasks.release("bob", tasks.claim("bob", "ü", 10), error="ä")
    tasks.update("me", deletes=[3])
    before = tasks.every_task()

    tasks = open_tasks()

    assert tasks.every_task() == before
    assert tasks.update("me", adds=[Add("g", bytes(range(256)), key="k")])[0].id == 1
    assert tasks.update("me", adds=[Add("g")])[0].id == 6


def test_a_snapshot_changes_nothing(open_tasks: Reopen) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g", b"%d" % n, key=f"{n}") for n in range(2_500)])
    tasks.update("me", deletes=range(1, 100))

    tasks.snapshot()
    tasks.update("me", deletes=range(100, 200))
    before = tasks.every_task()
    tasks = open_tasks()

    assert tasks.every_task() == before
    assert len(before) == 2_301
    assert tasks.update("me", adds=[Add("g", b"7", key="7")])[0].id == 8


def test_an_owned_task_stays_owned_over_a_restart(open_tasks: Reopen, hands: Hands) -> None:
    tasks = open_tasks()
    tasks.update("me", adds=[Add("g")])
    claimed = tasks.claim("alice", "g", 100)
    hands.go_on(50)

    tasks = open_tasks()

    assert tasks.claim("bob", "g", 10) is None
    assert tasks.renew("alice", claimed, 10).owner == "alice"


@pytest.mark.parametrize("place", ["memory", "disk", "sqlite", "cassandra"], indirect=True)
def test_two_stores_never_have_one_journal(tasks: Tasks, face: str, place: Place) -> None:
    journals = [tasks.store.journal, *([] if isinstance(place, DatabasePlace) else [place.journal()])]
    for journal in journals:
        other = Tasks(face, journal)
        (error,) = other.together(other.later("open"))
        other.end()
        assert isinstance(error, JournalLocked)

    assert tasks.update("me", adds=[Add("g")])


def test_a_closed_store_says_so(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g")])
    calls = [
        tasks.later("update", "me", adds=[Add("g")]),
        tasks.later("claim", "me", "g", 10),
        tasks.later("task", 1),
        tasks.later("groups"),
        tasks.later("stats"),
        tasks.later("snapshot"),
        tasks.later("flush"),
    ]
    tasks.close()
    tasks.close()

    for call in calls:
        (error,) = tasks.together(call)
        assert isinstance(error, StoreClosed)


def test_concurrent_changes_of_one_task_leave_one_winner(tasks: Tasks) -> None:
    (task,) = tasks.update("me", adds=[Add("g")])

    results = tasks.together(*(tasks.later("update", "me", changes=[Change(task.id)]) for _ in range(8)))

    won = [result for result in results if isinstance(result, list)]
    assert len(won) == 1
    assert all(isinstance(result, UpdateError) and result.changes == (1,) for result in results if result not in won)
    assert tasks.every_task() == won[0]


def test_concurrent_claims_get_different_tasks(tasks: Tasks) -> None:
    tasks.update("me", adds=[Add("g", b"%d" % n) for n in range(6)])

    claimed = tasks.together(*(tasks.later("claim", f"w{n}", "g", 10) for n in range(8)))

    got = [task for task in claimed if task is not None]
    assert len({task.data for task in got}) == 6
    assert len({task.id for task in got}) == 6


def test_no_error_means_unknown_in_a_quiet_store(tasks: Tasks) -> None:
    results = tasks.together(*(tasks.later("update", "me", adds=[Add("g")]) for _ in range(16)))

    assert not [result for result in results if isinstance(result, OutcomeUnknown)]
    assert sorted(task.id for (task,) in results) == list(range(1, 17))

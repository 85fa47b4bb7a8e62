"""What a semaphore promises to the owners that ask for its slots, on both stores and through both clients."""

from __future__ import annotations

import pytest
from contract.clients import Slots, owner_in, some_owner, stored

from slotkeeper.database import Value
from slotkeeper.owner import FREE, NONE, Owner, OwnerIdError, ReservedOwner
from slotkeeper.semaphore import StaleFence
from slotkeeper.semaphore.rows import TOKEN


def test_size_owners_get_a_token_each_and_the_next_gets_none(ours: Slots, name: str) -> None:
    ours.create(name, 3)
    owners = [some_owner() for _ in range(4)]
    holds = [ours.try_acquire(name, owner) for owner in owners]
    assert holds[3] is None
    assert {hold.token for hold in holds if hold} == {1, 2, 3}
    assert [hold.owner for hold in holds if hold] == owners[:3]


def test_second_acquire_by_the_owner_answers_the_token_it_holds(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 3)
    owner = some_owner()
    first = ours.take(name, owner)
    rows = [stored(ours, name)]
    for client in (ours, theirs, theirs, ours):
        again = client.take(name, str(owner))
        assert (again.owner, again.token, again.fence) == (owner, first.token, first.fence)
        assert again.again
        rows.append(stored(ours, name))
    assert not first.again
    before, ours_again, marked, *later = rows
    assert ours_again == before
    assert marked != before
    assert _without_marks(marked) == _without_marks(before)
    assert later == [marked, marked], "another process marks it once, before it tells anybody"


def _without_marks(rows: list[dict[str, Value]]) -> list[dict[str, Value]]:
    return [{**row, "held_token": None} if row["type"] == TOKEN else row for row in rows]


def test_refused_acquire_changes_nothing(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 2)
    for _ in range(2):
        ours.take(name, some_owner())
    before = stored(ours, name)
    assert ours.try_acquire(name, some_owner()) is None
    assert theirs.try_acquire(name, some_owner()) is None
    assert stored(ours, name) == before


def test_released_token_is_granted_to_the_next(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 1)
    first, second = some_owner(), some_owner()
    held = ours.take(name, first)
    assert theirs.try_acquire(name, second) is None
    assert ours.release(name, first) is True
    assert theirs.take(name, second).token == held.token


def test_release_from_another_process_finds_the_slot(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 500, 50)
    owner = some_owner()
    ours.take(name, owner)
    assert theirs.release(name, str(owner)) is True
    assert ours.token_of(name, owner) is None


def test_release_by_a_stranger_changes_nothing_and_says_so(ours: Slots, name: str) -> None:
    ours.create(name, 2)
    holder = some_owner()
    ours.take(name, holder)
    before = stored(ours, name)
    assert ours.release(name, some_owner()) is False
    assert stored(ours, name) == before


def test_release_of_nothing_changes_nothing_and_says_so(ours: Slots, name: str) -> None:
    ours.create(name, 2)
    assert ours.release(name, some_owner()) is False
    assert stored(ours, name) == []


def test_second_release_changes_nothing_and_says_so(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 1)
    owner = some_owner()
    ours.take(name, owner)
    assert ours.release(name, owner) is True
    before = stored(ours, name)
    assert ours.release(name, owner) is False
    assert theirs.release(name, owner) is False
    assert stored(ours, name) == before


def test_late_release_leaves_the_new_holder_alone(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 1)
    old, new = some_owner(), some_owner()
    ours.take(name, old)
    assert theirs.release(name, old)
    theirs.take(name, new)
    assert ours.release(name, old) is False
    assert [each.owner_id for each in ours.holders(name)] == [str(new)]


def test_late_release_of_an_earlier_hold_leaves_the_owners_new_hold_alone(
    ours: Slots, theirs: Slots, name: str
) -> None:
    ours.create(name, 1)
    owner = some_owner()
    first = ours.take(name, owner)
    assert ours.release(name, owner, fence=first.fence)
    second = theirs.take(name, owner)
    with pytest.raises(StaleFence) as caught:
        ours.release(name, owner, fence=first.fence)
    assert (caught.value.fence, caught.value.current) == (first.fence, second.fence)
    assert (caught.value.semaphore, caught.value.owner_id) == (name, str(owner))
    assert ours.token_of(name, owner) is not None
    assert ours.release(name, owner, fence=second.fence) is True
    assert ours.release(name, owner, fence=second.fence) is False


def test_fences_of_a_token_only_grow(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 1)
    fences = []
    for client in (ours, theirs) * 3:
        owner = some_owner()
        fences.append(client.take(name, owner).fence)
        assert client.release(name, owner)
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("bad", ["", "owner-1", "2:wf:run-1:007", NONE, FREE])
def test_what_is_no_owner_id_is_refused_at_the_door(ours: Slots, name: str, bad: str) -> None:
    ours.create(name, 1)
    error = ReservedOwner if bad in (NONE, FREE) else OwnerIdError
    for call in (ours.try_acquire, ours.release, ours.token_of):
        with pytest.raises(error):
            call(name, bad)
    assert stored(ours, name) == []


@pytest.mark.parametrize("owner", [Owner("", "", 0), Owner("a:b", ":c:", -9), Owner("é🎟'", "r\n", 2**63 - 1)])
def test_every_other_owner_can_hold(ours: Slots, theirs: Slots, name: str, owner: Owner) -> None:
    ours.create(name, 4, 2)
    hold = ours.take(name, owner)
    assert hold.owner == owner
    seen = theirs.token_of(name, owner)
    assert seen is not None
    assert (seen.token, seen.owner_id) == (hold.token, str(owner))
    assert theirs.release(name, owner)


# Reading


def test_holders_tell_who_holds_what_by_token(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 6, 2)
    holds = [ours.take(name, owner_in(bucket, 3)) for bucket in (2, 0, 1, 1)]
    seen = theirs.holders(name)
    assert [each.token for each in seen] == sorted(hold.token for hold in holds)
    assert {(each.token, each.owner_id, each.fence) for each in seen} == {
        (hold.token, str(hold.owner), hold.fence) for hold in holds
    }
    assert [each.bucket for each in seen] == [(each.token - 1) // 2 for each in seen]
    assert all(each.since_ms == each.fence and each.lease_left_s is None for each in seen)


def test_holder_of_and_token_of_agree_with_holders(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 4, 2)
    hold = ours.take(name, owner_in(1, 2))
    (seen,) = theirs.holders(name)
    assert theirs.holder_of(name, hold.token) == seen
    assert theirs.token_of(name, hold.owner) == seen
    assert [theirs.holder_of(name, token) for token in range(1, 5) if token != hold.token] == [None] * 3
    assert theirs.token_of(name, some_owner()) is None
    assert ours.release(name, hold.owner)
    assert theirs.holders(name) == []
    assert theirs.holder_of(name, hold.token) is None
    assert theirs.token_of(name, hold.owner) is None


@pytest.mark.parametrize("token", [0, -1, 5])
def test_token_that_the_semaphore_has_not_is_an_index_error(ours: Slots, name: str, token: int) -> None:
    ours.create(name, 4, 2)
    with pytest.raises(IndexError, match="1 to 4"):
        ours.holder_of(name, token)


# Buckets


def test_full_bucket_refuses_its_owners_while_another_has_room(ours: Slots, name: str) -> None:
    """Routing is arithmetic: an owner's bucket is computed, and its release finds the slot by computing it again."""
    ours.create(name, 4, 2)
    for _ in range(2):
        assert ours.take(name, owner_in(0, 2)).token in (1, 2)
    assert ours.try_acquire(name, owner_in(0, 2)) is None
    assert ours.take(name, owner_in(1, 2)).token in (3, 4)


def test_every_token_of_every_bucket_can_be_held(ours: Slots, name: str) -> None:
    ours.create(name, 11, 3)
    room = {0: 3, 1: 3, 2: 3, 3: 2}
    holds = [ours.take(name, owner_in(bucket, 4)) for bucket, free in room.items() for _ in range(free)]
    assert sorted(hold.token for hold in holds) == list(range(1, 12))
    assert [ours.try_acquire(name, owner_in(bucket, 4)) for bucket in room] == [None] * 4


# Many at once


def test_many_at_once_never_hold_more_than_there_is(ours: Slots, name: str) -> None:
    ours.create(name, 5)
    owners = [some_owner() for _ in range(16)]
    holds = [hold for hold in ours.together(*(ours.later("try_acquire", name, owner) for owner in owners)) if hold]
    assert sorted(hold.token for hold in holds) == [1, 2, 3, 4, 5]
    assert {(each.token, each.owner_id) for each in ours.holders(name)} == {(h.token, str(h.owner)) for h in holds}
    released = ours.together(*(ours.later("release", name, owner) for owner in owners))
    assert sum(released) == 5
    assert ours.holders(name) == []


def test_two_clients_at_once_share_what_there_is(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 4)
    for _ in range(3):
        asking = [(client, some_owner()) for client in (ours, theirs) * 4]
        holds = ours.together(*(client.later("try_acquire", name, owner) for client, owner in asking))
        assert sorted(hold.token for hold in holds if hold) == [1, 2, 3, 4]
        assert sum(ours.together(*(client.later("release", name, owner) for client, owner in asking))) == 4
        assert theirs.holders(name) == []


def test_owner_that_asks_many_times_at_once_gets_one_token(ours: Slots, name: str) -> None:
    ours.create(name, 5)
    owner = some_owner()
    holds = ours.together(*[ours.later("try_acquire", name, owner)] * 8)
    assert len({(hold.token, hold.fence) for hold in holds}) == 1
    assert [hold.again for hold in holds].count(False) == 1
    assert len(ours.holders(name)) == 1
    assert sum(ours.together(*[ours.later("release", name, owner)] * 8)) == 1


def test_batches_beyond_the_most_writes_are_split_and_all_answered(ours: Slots, name: str) -> None:
    ours.create(name, 100, 100)
    owners = [some_owner() for _ in range(110)]
    holds = ours.together(*(ours.later("try_acquire", name, owner) for owner in owners))
    assert sorted(hold.token for hold in holds if hold) == list(range(1, 101))
    assert sum(ours.together(*(ours.later("release", name, owner) for owner in owners))) == 100
    assert ours.holders(name) == []

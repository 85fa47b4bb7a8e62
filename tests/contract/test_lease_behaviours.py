"""What a lease promises to its holder and to everybody else, on both stores and through both clients."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest
from contract.clients import Call, some_owner
from contract.parties import Parties, Party
from contract.timely import name, ours, parties, theirs, world
from eventually import until
from semaphorerows import Seen, seen

from slotkeeper.semaphore import BadLease, Client, LeaseLost, StaleFence, domain_id

__all__ = ["name", "ours", "parties", "theirs", "world"]  # fixtures

LEASE_S, YEAR_S = 3, 365 * 24 * 3600
ENDED_S = LEASE_S + 0.5


def rows(parties: Parties, name: str) -> Seen:
    """Read the rows, which must agree."""
    return seen(parties.store, domain_id("default"), name)


@pytest.mark.parametrize("bad", [1, 0, -5, 2.5, True, "3", YEAR_S + 1], ids=repr)
def test_lease_is_whole_seconds_and_at_least_two(ours: Party, parties: Parties, name: str, bad: Any) -> None:
    owner = some_owner()
    calls: list[Call] = [
        lambda: ours.try_acquire(name, owner, lease_s=bad),
        lambda: ours.acquire(name, owner, lease_s=bad),
        lambda: ours.renew(name, owner, lease_s=bad),
        lambda: ours.attach(name, owner, 1, lease_s=bad),
    ]
    for call in calls:
        with pytest.raises(BadLease):
            call()
    assert rows(parties, name) == Seen({}, [], {})


def test_shortest_and_longest_lease_are_fine(ours: Party, parties: Parties, name: str) -> None:
    for lease_s in (2, YEAR_S):
        hold = ours.acquire(name, some_owner(), lease_s=lease_s)
        (left,) = rows(parties, name).leases.values()
        assert lease_s - 2 <= left <= lease_s
        assert ours.do(hold.release)


def test_hold_without_a_lease_lasts_until_it_is_released(ours: Party, name: str) -> None:
    hold = ours.acquire(name, some_owner())
    assert (hold.lease_s, hold.trusted_until, hold.is_lost) == (None, None, False)
    assert ours.holders(name)[0].lease_left_s is None
    assert ours.do(hold.release) is True
    assert ours.do(hold.release) is False


def test_holder_trusts_its_lease_for_less_than_the_server_keeps_it(ours: Party, name: str) -> None:
    before = time.monotonic()
    hold = ours.acquire(name, some_owner(), lease_s=LEASE_S)
    assert before + 1 < hold.trusted_until <= time.monotonic() + LEASE_S - 1
    assert ours.holders(name)[0].lease_left_s in range(LEASE_S + 1)
    assert ours.do(hold.release)


def test_lease_is_renewed_whatever_blocks_the_caller(ours: Party, parties: Parties) -> None:
    """A loop that does not come round, or a thread that is busy, loses nothing."""
    name = f"gpu {uuid4()}"
    ours.create(name, 3)
    holds = [ours.acquire(name, some_owner(), lease_s=LEASE_S) for _ in range(3)]
    before = [hold.trusted_until for hold in holds]
    fences = rows(parties, name).holders
    ours.do(time.sleep, ENDED_S)
    assert rows(parties, name).holders == fences
    for hold, trusted_before in zip(holds, before, strict=True):
        hold.check()
        assert not hold.lost.is_set()
        assert hold.trusted_until > max(trusted_before, time.monotonic())
        assert ours.token_of(name, hold.owner).fence == hold.fence
        assert ours.do(hold.release)


def test_lease_that_nobody_renews_ends_and_its_slot_is_free(
    ours: Party, theirs: Party, parties: Parties, name: str
) -> None:
    owner = some_owner()
    fence = ours.acquire(name, owner, lease_s=2).detach()
    assert theirs.try_acquire(name, some_owner()) is None
    until(lambda: rows(parties, name).holders == {}, bound_s=4)
    for party in (ours, theirs):
        with pytest.raises(StaleFence) as caught:
            party.attach(name, owner, fence, lease_s=2)
        assert (caught.value.fence, caught.value.current) == (fence, None)
        assert party.release(name, owner, fence=fence) is False
    later = theirs.acquire(name, some_owner())
    assert later.fence > fence
    assert ours.release(name, owner, fence=fence) is False
    assert rows(parties, name).holders == {str(later.owner): later.token}


def test_lost_lease_is_told_once_and_at_every_call(ours: Party, theirs: Party, parties: Parties, name: str) -> None:
    """Another process has released it: the next renewal finds that out."""
    hold = ours.acquire(name, some_owner(), lease_s=2)
    assert theirs.release(name, hold.owner, fence=hold.fence)
    successor = theirs.acquire(name, some_owner())
    until(hold.lost.is_set, bound_s=LEASE_S)
    assert hold.is_lost
    assert "lost" in repr(hold)
    for call in (lambda: ours.do(hold.release), hold.check, hold.detach):
        with pytest.raises(LeaseLost) as caught:
            call()
        assert (caught.value.token, caught.value.fence) == (hold.token, hold.fence)
    assert rows(parties, name).holders == {str(successor.owner): successor.token}


# with


def test_with_statement_gives_the_slot_back_on_every_way_out(ours: Party, parties: Parties, name: str) -> None:
    def works(hold: Any) -> None:
        assert rows(parties, name).holders == {str(hold.owner): hold.token}

    def fails(hold: Any) -> None:
        raise KeyError(hold.token)

    ours.within(works, name, some_owner())
    assert rows(parties, name).holders == {}
    with pytest.raises(KeyError) as caught:
        ours.within(fails, name, some_owner(), lease_s=LEASE_S)
    assert not hasattr(caught.value, "__notes__")
    assert rows(parties, name).holders == {}


def test_with_statement_tells_of_a_lost_lease_and_hides_no_error_of_its_body(
    ours: Party, parties: Parties, name: str
) -> None:
    def loses(hold: Any) -> None:
        with Client(parties.store) as another:
            assert another.release(name, hold.owner)
        until(lambda: hold.is_lost, bound_s=LEASE_S)

    def loses_and_fails(hold: Any) -> None:
        loses(hold)
        raise KeyError("the body's own")

    with pytest.raises(LeaseLost):
        ours.within(loses, name, some_owner(), lease_s=2)
    with pytest.raises(KeyError, match="the body's own") as caught:
        ours.within(loses_and_fails, name, some_owner(), lease_s=2)
    (note,) = caught.value.__notes__
    assert "not given back" in note
    assert "lease" in note


def test_detached_hold_is_not_given_back(ours: Party, parties: Parties, name: str) -> None:
    held: list[Any] = []

    def hands_over(hold: Any) -> None:
        held.append(hold)
        assert hold.detach() == hold.fence

    ours.within(hands_over, name, some_owner(), lease_s=30)
    (hold,) = held
    assert rows(parties, name).holders == {str(hold.owner): hold.token}
    assert ours.release(name, hold.owner, fence=hold.fence)


# Going on elsewhere


def test_detached_hold_goes_on_in_another_process(ours: Party, theirs: Party, parties: Parties, name: str) -> None:
    hold = ours.acquire(name, some_owner(), lease_s=LEASE_S)
    fence = hold.detach()
    attached = theirs.attach(name, str(hold.owner), fence, lease_s=LEASE_S)
    assert (attached.token, attached.fence, attached.owner) == (hold.token, fence, hold.owner)
    renewed_for = attached.trusted_until
    until(lambda: attached.trusted_until > renewed_for, bound_s=LEASE_S)
    assert ours.do(hold.release) is False
    assert rows(parties, name).holders == {str(hold.owner): hold.token}
    assert theirs.do(attached.release) is True
    assert rows(parties, name).holders == {}


def test_stale_fence_changes_nothing_and_says_so(ours: Party, theirs: Party, parties: Parties, name: str) -> None:
    owner = some_owner()
    first = ours.acquire(name, owner)
    assert ours.do(first.release)
    second = theirs.acquire(name, owner, lease_s=600)
    before = rows(parties, name)
    calls: list[Call] = [
        lambda: ours.release(name, owner, fence=first.fence),
        lambda: ours.renew(name, owner, lease_s=None, fence=first.fence),
        lambda: ours.attach(name, owner, first.fence),
    ]
    for call in calls:
        with pytest.raises(StaleFence) as caught:
            call()
        assert (caught.value.fence, caught.value.current) == (first.fence, second.fence)
    assert rows(parties, name).holders == before.holders
    assert theirs.do(second.release) is True


def test_renewal_changes_the_length_and_keeps_the_fence(
    ours: Party, theirs: Party, parties: Parties, name: str
) -> None:
    hold = ours.acquire(name, some_owner())
    for lease_s in (600, 60, None, 30):
        assert theirs.renew(name, hold.owner, lease_s=lease_s, fence=hold.fence) == hold.fence
        left = rows(parties, name).leases.get(str(hold.owner))
        assert left is None if lease_s is None else lease_s - 5 <= (left or 0) <= lease_s
    assert ours.do(hold.release) is True
    with pytest.raises(StaleFence) as caught:
        theirs.renew(name, hold.owner, lease_s=30)
    assert caught.value.current is None


def test_owner_that_acquires_again_gets_its_slot_with_the_lease_it_asks_for(
    ours: Party, theirs: Party, parties: Parties, name: str
) -> None:
    owner = some_owner()
    first = ours.acquire(name, owner, lease_s=60)
    again = theirs.acquire(name, owner, lease_s=600)
    assert (again.again, again.token, again.fence) == (True, first.token, first.fence)
    assert rows(parties, name).leases[str(owner)] > 60
    assert theirs.do(again.release)

"""Creating, describing, listing and deleting semaphores, on both stores and through both clients."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from contract.clients import Call, Slots, slots, some_owner
from contract.faces import Face
from contract.worlds import World

from slotkeeper.database import ClosedError
from slotkeeper.semaphore import (
    BadName,
    BadSize,
    NoSuchSemaphore,
    SemaphoreExists,
    SemaphoreHeld,
    domain_id,
)
from slotkeeper.semaphore import client as clients


def test_created_semaphore_is_described_with_what_it_was_given(ours: Slots, theirs: Slots, name: str) -> None:
    made = ours.create(name, 7, 3)
    assert (made.name, made.size, made.bucket_size, made.buckets) == (name, 7, 3, 3)
    assert made.domain_id == domain_id("behaviours")
    assert made.created_ms > 1_600_000_000_000
    assert theirs.describe(name) == made


@pytest.mark.parametrize(("size", "bucket_size"), [(1, 1), (5, 5), (100, 100), (101, 51), (250, 84), (1000, 100)])
def test_default_buckets_are_balanced(ours: Slots, name: str, size: int, bucket_size: int) -> None:
    assert ours.create(name, size).bucket_size == bucket_size


def test_bucket_larger_than_the_semaphore_is_fine(ours: Slots, name: str) -> None:
    made = ours.create(name, 2, 250)
    assert (made.bucket_size, made.buckets) == (250, 1)


def test_equal_create_finds_what_there_is(ours: Slots, theirs: Slots, name: str) -> None:
    made = ours.create(name, 7, 3)
    assert theirs.create(name, 7, 3) == made
    assert theirs.create(name, 7) == made, "who leaves the bucket size open takes the one that there is"


@pytest.mark.parametrize(("size", "bucket_size"), [(8, 3), (7, 4), (8, None)])
def test_another_create_of_the_name_is_a_conflict_that_shows_what_exists(
    ours: Slots, name: str, size: int, bucket_size: int | None
) -> None:
    made = ours.create(name, 7, 3)
    with pytest.raises(SemaphoreExists) as caught:
        ours.create(name, size, bucket_size)
    assert (caught.value.semaphore, caught.value.size, caught.value.bucket_size) == (name, 7, 3)
    assert ours.describe(name) == made


@pytest.mark.parametrize(("size", "bucket_size"), [(0, None), (-1, 1), (2**31, None), (5, 0), (5, 251), (5, -1)])
def test_impossible_sizes_are_refused_at_the_door(ours: Slots, name: str, size: int, bucket_size: int | None) -> None:
    with pytest.raises(BadSize):
        ours.create(name, size, bucket_size)
    with pytest.raises(NoSuchSemaphore):
        ours.describe(name)


@pytest.mark.parametrize("bad", ["", "n" * 1001, "é" * 501, "half \ud800"])
def test_impossible_names_are_refused_at_the_door(ours: Slots, bad: str) -> None:
    calls: list[Call] = [
        lambda: ours.create(bad, 1),
        lambda: ours.describe(bad),
        lambda: ours.try_acquire(bad, some_owner()),
    ]
    for call in calls:
        with pytest.raises(BadName):
            call()


@pytest.mark.parametrize(
    "odd", ["a", "n" * 1000, "naïve 名前 🎟", "x'; DROP TABLE semaphore_tokens; --", " ", "a\nb\0c"]
)
def test_any_other_text_is_a_name(world: World, face: Face, ours: Slots, odd: str) -> None:
    with slots(world.store, face, domain=uuid4()) as client:
        client.create(odd, 1)
        owner = some_owner()
        assert client.take(odd, owner).semaphore == odd
        assert client.release(odd, owner)
        assert [each.name for each in client.semaphores()] == [odd]


def test_unknown_semaphore_is_an_error_for_every_question(ours: Slots, name: str) -> None:
    calls: list[Call] = [
        lambda: ours.describe(name),
        lambda: ours.try_acquire(name, some_owner()),
        lambda: ours.release(name, some_owner()),
        lambda: ours.holders(name),
        lambda: ours.holder_of(name, 1),
        lambda: ours.token_of(name, some_owner()),
        lambda: ours.delete(name),
    ]
    for call in calls:
        with pytest.raises(NoSuchSemaphore) as caught:
            call()
        assert caught.value.semaphore == name


def test_domains_keep_their_names_apart(world: World, face: Face, ours: Slots, name: str) -> None:
    ours.create(name, 1)
    with slots(world.store, face, domain=uuid4()) as client, pytest.raises(NoSuchSemaphore):
        client.describe(name)


def test_domain_is_a_uuid_in_any_form_or_a_name(world: World, face: Face, ours: Slots, name: str) -> None:
    ours.create(name, 1)
    known = ours.client.domain_id
    for spelled in (known, str(known), known.hex, "behaviours"):
        with slots(world.store, face, domain=spelled) as client:
            assert client.describe(name).domain_id == known
    assert known == UUID("7cac79fc-6251-594b-ab73-e25cdba73025"), "names lead elsewhere: what they had is lost"


def test_list_is_in_order_of_names_whatever_the_pages(
    world: World, face: Face, ours: Slots, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s-{number:02d}" for number in range(10)]
    with slots(world.store, face, domain=uuid4()) as client:
        assert client.semaphores() == []
        for each in reversed(names):
            client.create(each, 1)
        for page in (1, 3, 5, 10, 11):
            monkeypatch.setattr(clients, "PAGE", page)
            assert [each.name for each in client.semaphores()] == names
            assert [each.name for each in client.semaphores(after="s-06")] == names[7:]


# Deleting


def test_deleted_semaphore_is_gone(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 4, 2)
    owner = some_owner()
    theirs.take(name, owner)
    ours.release(name, owner)
    ours.delete(name)
    calls: list[Call] = [
        lambda: ours.describe(name),
        lambda: theirs.try_acquire(name, owner),
        lambda: theirs.holders(name),
    ]
    for call in calls:
        with pytest.raises(NoSuchSemaphore):
            call()


def test_held_semaphore_is_not_deleted_and_works_on(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 4, 2)
    holder = ours.take(name, some_owner()).owner
    with pytest.raises(SemaphoreHeld) as caught:
        theirs.delete(name)
    assert (caught.value.semaphore, caught.value.held) == (name, 1)
    ours.take(name, some_owner())
    assert ours.release(name, holder) is True


def test_forced_deletion_takes_the_holders_slots_away(ours: Slots, theirs: Slots, name: str) -> None:
    ours.create(name, 4, 2)
    holder = ours.take(name, some_owner()).owner
    theirs.delete(name, force=True)
    with pytest.raises(NoSuchSemaphore):
        ours.release(name, holder)


def test_namesake_of_a_deleted_semaphore_starts_empty_and_works(ours: Slots, theirs: Slots, name: str) -> None:
    first = ours.create(name, 4, 2)
    owner = some_owner()
    old = theirs.take(name, owner)
    ours.delete(name, force=True)
    second = ours.create(name, 3, 1)
    assert second.created_ms > first.created_ms
    assert ours.holders(name) == []
    new = theirs.take(name, owner)
    assert not new.again
    assert new.fence > 0
    assert ours.token_of(name, owner) is not None
    assert old.semaphore == new.semaphore == name
    assert theirs.release(name, owner) is True


# The clients themselves


def test_client_that_is_not_open_says_so(world: World, face: Face, ours: Slots) -> None:
    client = Slots(world.store, face)
    with pytest.raises(ClosedError, match="not open"):
        client.holders("gpu")
    client.open()
    client.open()
    client.close()
    client.close()
    with pytest.raises(ClosedError):
        client.describe("gpu")
    assert ours.semaphores() is not None, "a store that was lent stays open"


def test_client_shows_where_it_works(ours: Slots) -> None:
    shown = repr(ours.client)
    assert ours.client.client_id in shown
    assert str(ours.client.domain_id) in shown

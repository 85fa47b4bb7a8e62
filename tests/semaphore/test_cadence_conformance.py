"""The cases of Cadence's own persistence suites, on a real Cassandra (spec/cadence-semaphore.md, section 5).

Each case has its number there. Where our answer is another one by design, the docstring says why. Not here: the task
queue (our line has another format), mock-level cases of Go iterators, and failed batches (test_unknown_outcomes_simple.py).
"""

from __future__ import annotations

import pytest
from contract.cadence import FREE, NONE, OWNER, TOKEN, Cadence
from contract.clients import some_owner

from slotkeeper import owner
from slotkeeper.owner import Owner
from slotkeeper.semaphore import Client, NoSuchSemaphore, RowsDisagree, SemaphoreExists
from slotkeeper.semaphore import client as clients
from slotkeeper.semaphore.rows import QUEUE


def take(client: Client, name: str, who: Owner) -> int:
    """Acquire what must be free, and return the token."""
    hold = client.try_acquire(name, who)
    assert hold is not None
    return hold.token


# Metadata, 5 cases


def test_metadata_1_what_is_created_is_read_back(client: Client, cadence: Cadence) -> None:
    client.create("sem", 200, 50)
    stored = cadence.metadata("sem")
    assert stored.pop("created_time") == client.describe("sem").created_ms > 0
    assert stored == {"domain_id": client.domain_id, "semaphore_name": "sem", "size": 200, "bucket_size": 50}


@pytest.mark.parametrize(("size", "stored"), [(100, 100), (7, 7), (101, 51), (250, 84)])
def test_metadata_2_without_a_bucket_size_the_buckets_are_balanced(
    client: Client, cadence: Cadence, size: int, stored: int
) -> None:
    """Cadence stores 100. We store the size that splits the tokens evenly into as many buckets: 51 + 50, not 100 + 1."""
    client.create("sem", size)
    assert cadence.metadata("sem")["bucket_size"] == stored


def test_metadata_3_second_create_of_a_name_overwrites_nothing(client: Client, other: Client, cadence: Cadence) -> None:
    """Cadence refuses an equal create too. Ours is fine: whoever repeats it after a lost answer finds its semaphore."""
    client.create("sem", 10, 5)
    before = cadence.metadata("sem")
    with pytest.raises(SemaphoreExists):
        other.create("sem", 20, 5)
    assert other.create("sem", 10, 5).created_ms == before["created_time"]
    assert cadence.create("sem", 30) is False
    assert cadence.metadata("sem") == before


def test_metadata_4_unknown_name_is_an_error(client: Client) -> None:
    with pytest.raises(NoSuchSemaphore):
        client.describe("nobody made this")


def test_metadata_5_ten_semaphores_are_listed_by_pages_of_three(
    client: Client, cadence: Cadence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "PAGE", 3)
    assert list(client.semaphores()) == []
    names = [f"sem-{number}" for number in range(10)]
    for name in names[:5]:
        client.create(name, 1)
    for name in names[5:]:
        assert cadence.create(name, 1)
    assert [found.name for found in client.semaphores()] == names


# Tokens, 3 cases


def test_tokens_1_grant_and_release(client: Client, other: Client, cadence: Cadence) -> None:
    first, second, stranger = some_owner(), some_owner(), some_owner()
    client.create("sem", 1)
    assert cadence.token_row("sem", 1) is None
    assert client.holder_of("sem", 1) is None, "a token that was never granted has no row, and is free"

    assert take(client, "sem", first) == 1
    assert other.try_acquire("sem", second) is None
    held = other.holder_of("sem", 1)
    assert held is not None
    assert held.owner_id == str(first)
    assert other.token_of("sem", first) == held

    assert other.release("sem", stranger) is False
    assert other.holder_of("sem", 1) == held
    assert client.release("sem", first) is True
    assert client.holder_of("sem", 1) is None
    assert client.token_of("sem", first) is None

    assert take(other, "sem", second) == 1
    again = client.holder_of("sem", 1)
    assert again is not None
    assert again.owner_id == str(second)


def test_tokens_2_owner_gets_no_second_token(client: Client, other: Client, cadence: Cadence) -> None:
    """Cadence answers AlreadyHeld with the first token. So do we, without a name for it: the hold says `again`."""
    client.create("sem", 2)
    who = some_owner()
    first = take(client, "sem", who)
    hold = other.try_acquire("sem", who)
    assert hold is not None
    assert (hold.token, hold.again) == (first, True)
    assert cadence.token_row("sem", 3 - first) is None, "a refused grant has left a row"


def test_tokens_3_scan_shows_both_rows_of_each_grant(client: Client, cadence: Cadence) -> None:
    """Cadence's scan finds six rows. Ours has one more a bucket: the queue row, of a type that Cadence does not know."""
    client.create("sem", 5)
    owners = [some_owner() for _ in range(3)]
    tokens = [take(client, "sem", who) for who in owners]
    rows = cadence.scan("sem", page=2)
    assert [row["type"] for row in rows] == [TOKEN] * 3 + [OWNER] * 3 + [QUEUE]
    assert {row["token_id"]: row["holder"] for row in rows[:3]} == dict(zip(tokens, map(str, owners), strict=True))
    assert {row["held_token"]: row["owner_id"] for row in rows[3:6]} == dict(zip(tokens, map(str, owners), strict=True))


def test_older_equal_create_resets_no_held_slot(client: Client, other: Client) -> None:
    """Cadence once seeded a bucket's rows, and seeding twice was to reset nothing. Nothing is seeded; create is the peer."""
    client.create("sem", 2)
    who = some_owner()
    take(client, "sem", who)
    other.create("sem", 2)
    assert [held.owner_id for held in other.holders("sem")] == [str(who)]


# Grant, statement by statement


def test_grant_of_a_token_taken_meanwhile_is_no_grant(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    assert client.try_acquire("sem", some_owner()) is not None
    (held,) = client.holders("sem")
    assert client.release("sem", held.owner_id) is True
    taker = str(some_owner())
    assert cadence.grant("sem", 1, taker), "the client still believes that token 1 is free"
    assert client.try_acquire("sem", some_owner()) is None
    assert [each.owner_id for each in client.holders("sem")] == [taker]


def test_grant_to_an_owner_who_got_a_token_meanwhile_answers_that_token(client: Client, cadence: Cadence) -> None:
    """Cadence looks for the owner row among the rows of the refusal, first or second. We read the bucket again."""
    client.create("sem", 3)
    who = some_owner()
    take(client, "sem", some_owner())
    free = next(token for token in (1, 2, 3) if client.holder_of("sem", token) is None)
    assert cadence.grant("sem", free, str(who))
    hold = client.try_acquire("sem", who)
    assert hold is not None
    assert (hold.token, hold.again) == (free, True)
    assert len(client.holders("sem")) == 2


@pytest.mark.parametrize("held_token", [None, 0, -1, 1])
def test_grant_stopped_by_an_owner_row_that_no_token_confirms_says_so(
    client: Client, cadence: Cadence, held_token: int | None
) -> None:
    """Cadence skips malformed owner rows, and then calls the slot taken. We say that the rows disagree: trying elsewhere
    cannot help, as the owner row stands in the way of every token.
    """
    client.create("sem", 2)
    who = some_owner()
    cadence.put_owner("sem", str(who), held_token)
    with pytest.raises(RowsDisagree) as caught:
        client.try_acquire("sem", who)
    assert (caught.value.semaphore, caught.value.owner_id) == ("sem", str(who))
    assert client.holders("sem") == []
    assert take(client, "sem", some_owner()) in (1, 2), "other owners are not concerned"


def test_grant_outside_of_the_range_is_not_ours_to_make(client: Client, cadence: Cadence) -> None:
    """Cadence's store makes a row for any token id. Such a row is nobody's slot: it is not shown, granted or counted."""
    client.create("sem", 1)
    assert cadence.grant("sem", 2, str(some_owner()))
    assert client.holders("sem") == []
    assert take(client, "sem", some_owner()) == 1
    assert client.try_acquire("sem", some_owner()) is None


# Release, statement by statement


def test_release_by_the_holder_applies(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    who = some_owner()
    take(client, "sem", who)
    assert client.release("sem", who) is True
    row = cadence.token_row("sem", 1)
    assert row is not None
    assert row["holder"] == FREE
    assert cadence.owner_row("sem", str(who)) is None


def test_release_of_what_was_released_meanwhile_changes_nothing(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    who, next_one = str(some_owner()), str(some_owner())
    take(client, "sem", Owner.parse(who))
    assert cadence.release("sem", 1, who)
    assert cadence.grant("sem", 1, next_one)
    before = cadence.scan("sem")
    assert client.release("sem", who) is False
    assert cadence.scan("sem") == before


def test_release_by_an_owner_one_byte_away_changes_nothing(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    take(client, "sem", Owner("wf", "run-1", 1))
    before = cadence.scan("sem")
    assert client.release("sem", Owner("wf", "run-1", -1)) is False
    assert client.release("sem", Owner("Wf", "run-1", 1)) is False
    assert cadence.scan("sem") == before


# Reads, statement by statement


def test_read_by_token_shows_held_free_and_never_granted(client: Client, cadence: Cadence) -> None:
    """Cadence reads FREE as "" and calls a missing row an error. Both are a free token, and a free token has no holder."""
    client.create("sem", 3)
    who = str(some_owner())
    cadence.put_token("sem", 1, who, at_ms=1_700_000_000_123)
    cadence.put_token("sem", 2, FREE, at_ms=1_700_000_000_123)
    held = client.holder_of("sem", 1)
    assert held is not None
    assert (held.token, held.owner_id, held.fence, held.bucket) == (1, who, 1_700_000_000_123, 0)
    assert client.holder_of("sem", 2) is None
    assert client.holder_of("sem", 3) is None


def test_read_by_owner_shows_its_token_or_nothing(client: Client, cadence: Cadence) -> None:
    client.create("sem", 3)
    who = str(some_owner())
    assert cadence.grant("sem", 2, who)
    held = client.token_of("sem", who)
    assert held is not None
    assert held.token == 2
    assert client.token_of("sem", some_owner()) is None


def test_owner_row_that_no_token_row_confirms_is_no_hold(client: Client, cadence: Cadence) -> None:
    client.create("sem", 3)
    who = str(some_owner())
    cadence.put_owner("sem", who, 2)
    assert client.token_of("sem", who) is None


# Sentinels, 2 cases


def test_sentinels_are_the_encoding_of_what_no_run_can_have() -> None:
    assert str(Owner("", "30000000-0000-f000-f000-000000000000", -1)) == NONE == owner.NONE
    assert str(Owner("", "30000000-0000-f000-f000-000000000000", -2)) == FREE == owner.FREE
    assert len(NONE) == len(FREE) == 42


def test_token_rows_carry_the_sentinel_in_their_key(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    take(client, "sem", some_owner())
    row = cadence.token_row("sem", 1)
    assert row is not None
    assert row["owner_id"] == NONE

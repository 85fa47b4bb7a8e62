"""One keyspace, two programs: rows as Cadence writes them work for us, and ours are what Cadence would have written."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from contract.cadence import FREE, NONE, OWNER, TOKEN, Cadence, now_ms
from contract.clients import owner_in, some_owner

from slotkeeper.owner import OwnerIdError
from slotkeeper.semaphore import Client
from slotkeeper.semaphore.rows import QUEUE

AT_MS = 1_700_000_000_123
HELD, FREED, NULL, MISSING = 1, 2, 3, 4


@pytest.fixture
def golden(client: Client, cadence: Cadence) -> str:
    """A bucket as Cadence leaves it: token 1 held, 2 released, 3 without a holder, 4 without a row. Returns the holder."""
    assert cadence.create("sem", 4)
    holder = str(some_owner())
    cadence.put_token("sem", HELD, holder, at_ms=AT_MS)
    cadence.put_owner("sem", holder, HELD, at_ms=AT_MS)
    cadence.put_token("sem", FREED, FREE, at_ms=AT_MS)
    cadence.put_token("sem", NULL, None, at_ms=AT_MS)
    return holder


# Cadence's rows, read and changed by us


def test_cadences_semaphore_is_described_as_it_was_created(client: Client, cadence: Cadence, golden: str) -> None:
    found = client.describe("sem")
    assert (found.size, found.bucket_size, found.buckets) == (4, 100, 1)
    assert found.created_ms == cadence.metadata("sem")["created_time"]
    assert client.create("sem", 4, 100) == found


def test_cadences_holder_is_shown(client: Client, golden: str) -> None:
    (held,) = client.holders("sem")
    assert (held.token, held.owner_id, held.fence, held.since_ms) == (HELD, golden, AT_MS, AT_MS)
    assert held.lease_left_s is None
    assert client.holder_of("sem", HELD) == client.token_of("sem", golden) == held


def test_cadences_holder_that_acquires_through_us_keeps_its_token(
    client: Client, cadence: Cadence, golden: str
) -> None:
    before = cadence.scan("sem")
    hold = client.try_acquire("sem", golden)
    assert hold is not None
    assert (hold.token, hold.fence, hold.again) == (HELD, AT_MS, True)
    marked = cadence.token_row("sem", HELD)
    assert marked is not None
    assert isinstance(marked["held_token"], int), "whoever granted it gives it back no more"
    assert [{**row, "held_token": None} if row == marked else row for row in cadence.scan("sem")] == before
    assert client.try_acquire("sem", golden) is not None
    assert cadence.token_row("sem", HELD) == marked, "once is enough"


def test_released_null_and_missing_tokens_are_all_granted_and_no_more(client: Client, golden: str) -> None:
    holds = [client.try_acquire("sem", some_owner()) for _ in range(4)]
    assert holds[3] is None
    assert {hold.token for hold in holds if hold} == {FREED, NULL, MISSING}
    assert all(hold.fence > AT_MS for hold in holds if hold)


def test_cadences_hold_is_released_through_us(client: Client, cadence: Cadence, golden: str) -> None:
    assert client.release("sem", golden) is True
    row = cadence.token_row("sem", HELD)
    assert row is not None
    assert (row["holder"], row["held_token"]) == (FREE, None)
    assert row["updated_time"] > AT_MS
    assert cadence.owner_row("sem", golden) is None
    assert client.release("sem", golden) is False


def test_version_of_a_token_grows_though_its_last_writers_clock_was_ahead(client: Client, cadence: Cadence) -> None:
    """A clock that is an hour ahead must not make every later grant look older than the one before it."""
    client.create("sem", 1)
    ahead, holder = now_ms() + 3_600_000, str(some_owner())
    assert cadence.grant("sem", 1, holder, at_ms=ahead)
    assert client.release("sem", holder) is True
    hold = client.try_acquire("sem", some_owner())
    assert hold is not None
    assert hold.fence == ahead + 2, "one for the release, one for the grant"


def test_holder_of_no_canonical_spelling_is_shown_as_text_and_not_taken_at_our_door(
    client: Client, cadence: Cadence
) -> None:
    """Cadence's store takes any text: its own suites hold tokens for `owner-<uuid>`. Two spellings would be two owners."""
    client.create("sem", 2)
    odd = f"owner-{uuid4()}"
    assert cadence.grant("sem", 1, odd)
    (held,) = client.holders("sem")
    assert (held.token, held.owner_id) == (1, odd)
    for call in (client.try_acquire, client.release, client.token_of):
        with pytest.raises(OwnerIdError):
            call("sem", odd)
    hold = client.try_acquire("sem", some_owner())
    assert hold is not None
    assert hold.token == 2
    assert client.try_acquire("sem", some_owner()) is None


def test_row_types_that_we_do_not_know_are_left_alone(client: Client, cadence: Cadence, golden: str) -> None:
    strange: dict[str, Any] = {"type": 99, "token_id": 1, "owner_id": NONE, "holder": "something else", "held_token": 7}
    cadence.put("sem", **strange)
    assert len(client.holders("sem")) == 1
    assert client.try_acquire("sem", some_owner()) is not None
    assert strange.items() <= cadence.scan("sem")[-1].items()


# Our rows, read by plain CQL and changed by Cadence


def test_our_grant_column_by_column(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    who, began = some_owner(), now_ms()
    hold = client.try_acquire("sem", who)
    assert hold is not None
    assert began <= hold.fence <= now_ms()
    partition = {"domain_id": client.domain_id, "semaphore_name": "sem", "bucket": 0}
    token, owner, queue = cadence.scan("sem")
    assert isinstance(token["held_token"], int), "our mark, which Cadence does not read"
    assert token == {
        **partition,
        "type": TOKEN,
        "token_id": 1,
        "owner_id": NONE,
        "holder": str(who),
        "held_token": token["held_token"],
        "updated_time": hold.fence,
    }
    assert owner == {
        **partition,
        "type": OWNER,
        "token_id": -1,
        "owner_id": str(who),
        "holder": None,
        "held_token": 1,
        "updated_time": hold.fence,
    }
    assert (queue["type"], queue["token_id"], queue["owner_id"]) == (QUEUE, 0, NONE)
    assert (queue["holder"], queue["held_token"]) == ("0" * 19, None), "nobody has queued, nothing became free"


def test_our_release_column_by_column(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    who = some_owner()
    hold = client.try_acquire("sem", who)
    assert hold is not None
    assert client.release("sem", who)
    token, queue = cadence.scan("sem")
    assert (token["type"], token["token_id"], token["owner_id"]) == (TOKEN, 1, NONE)
    assert token["holder"] == FREE
    assert token["updated_time"] > hold.fence
    assert queue["holder"] == "0" * 19
    assert isinstance(queue["held_token"], int), "the free mark tells those who queue that something became free"


def test_free_mark_changes_with_every_release(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    marks = []
    for _ in range(5):
        who = some_owner()
        client.try_acquire("sem", who)
        client.release("sem", who)
        marks.append(cadence.scan("sem")[-1]["held_token"])
    assert len(set(marks)) == 5


def test_our_rows_hold_without_end(client: Client, cadence: Cadence) -> None:
    client.create("sem", 1)
    client.try_acquire("sem", some_owner())
    query = "SELECT ttl(holder) AS a, ttl(held_token) AS b, ttl(updated_time) AS c FROM {}.semaphore_tokens"
    rows = cadence.session.execute(query.format(cadence.keyspace))
    assert {(row.a, row.b, row.c) for row in rows} == {(None, None, None)}


def test_cadence_reads_and_respects_our_grants(client: Client, cadence: Cadence) -> None:
    client.create("sem", 2)
    who = some_owner()
    hold = client.try_acquire("sem", who)
    assert hold is not None
    assert cadence.grant("sem", hold.token, str(some_owner())) is False, "the token is taken"
    assert cadence.grant("sem", 3 - hold.token, str(who)) is False, "the owner has one"
    assert cadence.release("sem", hold.token, str(some_owner())) is False
    assert cadence.token_row("sem", 3 - hold.token) is None


def test_token_goes_back_and_forth_between_the_two(client: Client, other: Client, cadence: Cadence) -> None:
    """Our versions only guard our own batches: what Cadence writes in between, we find out and plan anew."""
    client.create("sem", 1)
    for _ in range(3):
        ours, theirs = some_owner(), str(some_owner())
        for each in (client, other):
            assert each.try_acquire("sem", ours) is not None
        assert cadence.release("sem", 1, str(ours))
        assert cadence.grant("sem", 1, theirs)
        assert client.try_acquire("sem", ours) is None
        assert other.release("sem", theirs) is True


def test_owners_of_both_meet_in_the_same_buckets(client: Client, cadence: Cadence) -> None:
    assert cadence.create("sem", 6, 2)
    for bucket in range(3):
        ours, theirs = owner_in(bucket, 3), str(owner_in(bucket, 3))
        assert cadence.grant("sem", 2 * bucket + 1, theirs, bucket=bucket)
        hold = client.try_acquire("sem", ours)
        assert hold is not None
        assert hold.token == 2 * bucket + 2
        assert client.release("sem", theirs) is True
    assert [held.bucket for held in client.holders("sem")] == [0, 1, 2]

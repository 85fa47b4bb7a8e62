"""How much goes into one batch, and from where tokens are taken."""

from __future__ import annotations

import pytest
from contract.partition import KEY
from contract.planning import (
    MARK,
    NOW,
    SETTING,
    answers,
    granted,
    held,
    in_order,
    planned,
    queue,
    state,
    waiter,
)
from msgspec.structs import replace

from slotkeeper.database import Batch, delete
from slotkeeper.database.batch import MOST_WRITES
from slotkeeper.semaphore.mark import taken
from slotkeeper.semaphore.operations import (
    Acquire,
    Granted,
    Release,
    Released,
)
from slotkeeper.semaphore.rows import (
    TOKENS,
    owner_key,
)
from slotkeeper.semaphore.state import Token


def test_owner_has_one_operation_a_batch() -> None:
    made = planned(
        state({1: held("ann"), 2: Token(), 3: Token()}), *[Acquire("eve")] * 3, Release("ann"), Acquire("ann")
    )
    assert sorted(index for index, _ in made.after) == [0, 3]
    assert sorted(made.later) == [1, 2, 4]


@pytest.mark.parametrize("lease_s", [None, 30])
def test_grants_beyond_the_most_writes_wait_for_the_next_batch(lease_s: int | None) -> None:
    full = planned(state({token: Token() for token in range(1, 251)}), *[Acquire(f"o{n}", lease_s) for n in range(250)])
    assert MOST_WRITES - 12 <= len(full.writes) <= MOST_WRITES
    Batch(TOKENS, KEY, tuple(full.writes))
    assert sorted([*answers(full), *full.later]) == list(range(250))
    assert list(answers(full)) == list(range(len(full.after))), "the first come first"


def test_releases_beyond_the_most_writes_wait_for_the_next_batch() -> None:
    tokens = {token: held(f"o{token}") for token in range(1, 251)}
    made = planned(state(tokens), *[Release(f"o{token}") for token in tokens])
    assert len(made.writes) <= MOST_WRITES
    Batch(TOKENS, KEY, tuple(made.writes))
    assert sorted([*answers(made), *made.later]) == list(range(250))


def test_releases_to_a_long_line_fit_into_one_batch() -> None:
    tokens = {token: held(f"o{token}") for token in range(1, 251)}
    line = [waiter(ticket, f"w{ticket}") for ticket in range(1, 251)]
    made = planned(state(tokens, *line, last=250), *[Release(f"o{token}") for token in tokens])
    assert len(made.writes) <= MOST_WRITES
    Batch(TOKENS, KEY, tuple(made.writes))
    assert made.left == list(range(1, len(made.left) + 1)), "the first of the line come first"


def test_newcomer_does_not_pass_a_line_too_long_for_the_batch() -> None:
    tokens = {token: Token() for token in range(1, 251)}
    line = [waiter(ticket, f"w{ticket}") for ticket in range(1, 101)]
    made = planned(state(tokens, *line, last=100), Acquire("eve"))
    assert 0 < len(made.left) < 100
    assert all(token.holder != "eve" for token in made.tokens.values())


def test_waiters_that_have_their_slots_never_fill_a_batch_beyond_its_size() -> None:
    tokens = {token: held(f"o{token}") for token in range(1, 251)}
    line = [waiter(token, f"o{token}") for token in tokens]
    made = planned(state(tokens, *line, last=250))
    assert len(made.writes) <= MOST_WRITES
    Batch(TOKENS, KEY, tuple(made.writes))


def test_long_owner_ids_make_smaller_batches() -> None:
    tokens = {token: Token() for token in range(1, 101)}
    made = planned(state(tokens), *[Acquire(f"{n}{'x' * 8000}") for n in range(50)])
    assert 1 <= len(made.after) < 5
    assert len(made.later) == 50 - len(made.after)


# Where tokens are taken from


def test_tokens_are_taken_from_a_place_of_ones_own() -> None:
    tokens = {token: Token() for token in range(1, 6)}
    made = planned(state(tokens), *[Acquire(f"o{n}") for n in range(5)], setting=replace(SETTING, place=4))
    assert [answer.token for _, answer in made.after if isinstance(answer, Granted)] == [4, 5, 1, 2, 3]


def test_token_given_back_in_the_batch_goes_on_before_a_free_one() -> None:
    """It saves two writes, and a state in which the token is free."""
    made = planned(state({1: held("ann"), 2: Token()}), Release("ann"), Acquire("eve"))
    assert answers(made) == {0: Released(1), 1: Granted(1, NOW, mark=taken(MARK))}
    assert in_order(made.writes) == in_order(
        [*granted(1, "eve", seen=500, holders=("ann",)), delete(owner_key("ann")), queue(0)]
    )

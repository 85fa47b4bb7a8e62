"""What one batch is planned to write, and what each write guards: the table of DESIGN section 6, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from contract.partition import KEY
from contract.planning import (
    MARK,
    NOW,
    OLD_MARK,
    SETTING,
    answers,
    freed,
    gone,
    granted,
    head,
    held,
    in_order,
    leased,
    planned,
    queue,
    state,
    waiter,
)
from msgspec.structs import replace

from slotkeeper.database import Batch, Value, Write, delete, insert, update
from slotkeeper.owner import FREE
from slotkeeper.semaphore import mark
from slotkeeper.semaphore.operations import (
    Acquire,
    Answer,
    Cancel,
    Cancelled,
    Full,
    Granted,
    NotHeld,
    Operation,
    Queued,
    Release,
    Released,
    Renew,
    Renewed,
    Stale,
    Stay,
    Stayed,
)
from slotkeeper.semaphore.plan import plan
from slotkeeper.semaphore.planned import PROVISIONAL_S, WAITER_S, Ask, Setting
from slotkeeper.semaphore.rows import (
    TOKENS,
    owner_key,
    ticket_text,
    token_key,
    waiter_key,
    waiting_owner_key,
)
from slotkeeper.semaphore.state import State, Token

KEPT, TAKEN = mark.kept(MARK), mark.taken(MARK)
TO_US, TO_THEM = mark.handed_to("us"), mark.handed_to("they")
OURS = replace(SETTING, ours={(1, 500, None)})
RENEWED: dict[str, tuple[Value, ...]] = {"holder": ("ann",), "updated_time": (500,), "held_token": (None,)}


@dataclass(frozen=True)
class Situation:
    """What is known, what is asked; then what is written, in any order, and answered."""

    known: State
    asked: Sequence[Operation]
    writes: Sequence[Write]
    answers: Sequence[Answer]
    setting: Setting = SETTING
    served: Sequence[tuple[str, Granted]] = field(default=())


TWO = {1: held("ann"), 2: held("bob")}
SITUATIONS = {
    "a token without a row is granted": Situation(
        state({1: Token()}),
        [Acquire("eve")],
        [*granted(1, "eve", seen=None), queue(0)],
        [Granted(1, NOW, mark=TAKEN)],
    ),
    "a released token is granted": Situation(
        state({1: Token(None, 500)}, last=4, mark=OLD_MARK, head=4),
        [Acquire("eve")],
        [*granted(1, "eve", seen=500), queue(4)],
        [Granted(1, NOW, mark=TAKEN)],
    ),
    "a version that is ahead of our clock grows by one": Situation(
        state({1: Token(None, NOW + 9)}),
        [Acquire("eve")],
        [*granted(1, "eve", seen=NOW + 9), queue(0)],
        [Granted(1, NOW + 10, mark=TAKEN)],
    ),
    "a grant with a lease": Situation(
        state({1: Token(None, 500)}),
        [Acquire("eve", lease_s=30)],
        [*leased(1, "eve", 30, seen=500), queue(0)],
        [Granted(1, NOW, mark=TAKEN)],
    ),
    "several grants share the queue row's guard": Situation(
        state({1: Token(), 2: held("ann"), 3: Token(None, 7)}),
        [Acquire("eve"), Acquire("fay")],
        [*granted(1, "eve", seen=None), *granted(3, "fay", seen=7), queue(0)],
        [Granted(1, NOW, mark=TAKEN), Granted(3, NOW, mark=TAKEN)],
    ),
    "a release where nobody waits": Situation(
        state(TWO, last=4, mark=OLD_MARK, head=4),
        [Release("bob")],
        [freed(2, "bob"), delete(owner_key("bob")), queue(4, marked=MARK)],
        [Released(2)],
    ),
    "a release with the hold's fence": Situation(
        state(TWO),
        [Release("bob", fence=500)],
        [freed(2, "bob"), delete(owner_key("bob")), queue(0, marked=MARK)],
        [Released(2)],
    ),
    "several releases draw one mark": Situation(
        state(TWO),
        [Release("bob"), Release("ann")],
        [
            freed(1, "ann"),
            freed(2, "bob"),
            delete(owner_key("ann")),
            delete(owner_key("bob")),
            queue(0, marked=MARK),
        ],
        [Released(2), Released(1)],
    ),
    "a release hands the slot to the head of the line, for a few seconds": Situation(
        state(TWO, waiter(3, "eve"), waiter(5, "fay"), last=5, mark=OLD_MARK),
        [Release("ann")],
        [
            *leased(1, "eve", PROVISIONAL_S, seen=500, holders=("ann",), handed_to="they"),
            delete(owner_key("ann")),
            *gone(3, "eve"),
            head(3),
        ],
        [Released(1)],
    ),
    "a slot handed to a waiter of our own needs no confirmation": Situation(
        state(TWO, waiter(3, "eve", "us"), last=3),
        [Release("ann")],
        [*granted(1, "eve", seen=500, holders=("ann",)), delete(owner_key("ann")), *gone(3, "eve", "us"), head(3)],
        [Released(1)],
        replace(SETTING, leases={"eve": None}),
        [("eve", Granted(1, NOW, mark=TAKEN))],
    ),
    "a slot handed to a waiter of our own has the lease it asked for": Situation(
        state(TWO, waiter(3, "eve", "us"), last=3),
        [Release("ann")],
        [*leased(1, "eve", 30, seen=500, holders=("ann",)), delete(owner_key("ann")), *gone(3, "eve", "us"), head(3)],
        [Released(1)],
        replace(SETTING, leases={"eve": 30}),
        [("eve", Granted(1, NOW, mark=TAKEN))],
    ),
    "two releases admit the first two of the line": Situation(
        state(TWO, waiter(3, "eve"), waiter(5, "fay"), waiter(6, "gil"), last=6),
        [Release("ann"), Release("bob")],
        [
            *leased(1, "eve", PROVISIONAL_S, seen=500, holders=("ann",), handed_to="they"),
            *leased(2, "fay", PROVISIONAL_S, seen=500, holders=("bob",), handed_to="they"),
            delete(owner_key("ann")),
            delete(owner_key("bob")),
            *gone(3, "eve"),
            *gone(5, "fay"),
            head(5),
        ],
        [Released(1), Released(2)],
    ),
    "a release that outnumbers the line frees the rest": Situation(
        state(TWO, waiter(3, "eve"), last=3),
        [Release("ann"), Release("bob")],
        [
            *leased(1, "eve", PROVISIONAL_S, seen=500, holders=("ann",), handed_to="they"),
            freed(2, "bob"),
            delete(owner_key("ann")),
            delete(owner_key("bob")),
            *gone(3, "eve"),
            head(3),
            queue(3, marked=MARK),
        ],
        [Released(1), Released(2)],
    ),
    "whoever asks helps the head first": Situation(
        state({1: held("ann"), 2: Token(None, 500)}, waiter(3, "eve"), last=3),
        [Acquire("fay")],
        [*leased(2, "eve", PROVISIONAL_S, seen=500, handed_to="they"), *gone(3, "eve"), head(3)],
        [Full(2)],
    ),
    "a newcomer takes what the line leaves over": Situation(
        state({1: Token(), 2: Token(None, 500)}, waiter(3, "eve"), last=3),
        [Acquire("fay")],
        [
            *leased(1, "eve", PROVISIONAL_S, seen=None, handed_to="they"),
            *gone(3, "eve"),
            head(3),
            *granted(2, "fay", seen=500),
            queue(3),
        ],
        [Granted(2, NOW, mark=TAKEN)],
    ),
    "the head itself gets its slot": Situation(
        state({1: Token(None, 500)}, waiter(3, "eve"), last=3),
        [Acquire("eve")],
        [*granted(1, "eve", seen=500), *gone(3, "eve"), head(3)],
        [Granted(1, NOW, mark=TAKEN)],
    ),
    "a waiter that has a slot leaves the line": Situation(
        state(TWO, waiter(3, "ann"), waiter(4, "eve"), last=4),
        [],
        [*gone(3, "ann"), head(3)],
        [],
    ),
    "queueing names the last ticket and the free mark": Situation(
        state(TWO, last=4, mark=OLD_MARK, head=4),
        [Acquire("eve", wait=True)],
        [
            insert(waiter_key(5, "us"), {"holder": "eve", "updated_time": NOW}, absent=True, ttl_s=WAITER_S),
            insert(waiting_owner_key("eve"), {"holder": ticket_text(5)}, absent=True, ttl_s=WAITER_S),
            queue(5, seen=4, mark_seen=OLD_MARK),
        ],
        [Queued(5)],
    ),
    "two who queue together stand one behind the other": Situation(
        state(TWO, waiter(4, "dan"), last=4, mark=OLD_MARK),
        [Acquire("eve", wait=True), Acquire("fay", wait=True)],
        [
            insert(waiter_key(5, "us"), {"holder": "eve", "updated_time": NOW}, absent=True, ttl_s=WAITER_S),
            insert(waiting_owner_key("eve"), {"holder": ticket_text(5)}, absent=True, ttl_s=WAITER_S),
            insert(waiter_key(6, "us"), {"holder": "fay", "updated_time": NOW}, absent=True, ttl_s=WAITER_S),
            insert(waiting_owner_key("fay"), {"holder": ticket_text(6)}, absent=True, ttl_s=WAITER_S),
            queue(6, seen=4, mark_seen=OLD_MARK),
        ],
        [Queued(5), Queued(6)],
    ),
    "cancelling guards on the waiter itself": Situation(
        state(TWO, waiter(3, "eve"), waiter(4, "fay"), last=4),
        [Cancel("fay")],
        gone(4, "fay"),
        [Cancelled(4)],
    ),
    "the head that cancels moves the head": Situation(
        state(TWO, waiter(3, "eve"), waiter(4, "fay"), last=4),
        [Cancel("eve")],
        [*gone(3, "eve"), head(3)],
        [Cancelled(3)],
    ),
    "renewing keeps the version and writes the owner row whole": Situation(
        state({1: held("ann", 500, ends_at=103.0)}),
        [Renew("ann", lease_s=30)],
        [
            update(token_key(1), {"holder": "ann"}, expect=RENEWED, ttl_s=30),
            update(token_key(1), {"held_token": KEPT}),
            insert(owner_key("ann"), {"held_token": 1, "updated_time": 500}, ttl_s=30),
        ],
        [Renewed(1, 500)],
    ),
    "a hold handed over for a few seconds is confirmed by acquiring": Situation(
        state({1: Token("ann", 500, 103.0, TO_US)}),
        [Acquire("ann")],
        [
            update(token_key(1), {"holder": "ann", "held_token": TAKEN}, expect={**RENEWED, "held_token": (TO_US,)}),
            insert(owner_key("ann"), {"held_token": 1, "updated_time": 500}),
        ],
        [Granted(1, 500, again=False, mark=TAKEN)],
    ),
    "a hold handed to another process is kept by acquiring: nobody gives it back any more": Situation(
        state({1: Token("ann", 500, 103.0, TO_THEM)}),
        [Acquire("ann")],
        [
            update(token_key(1), {"holder": "ann", "held_token": KEPT}, expect={**RENEWED, "held_token": (TO_THEM,)}),
            insert(owner_key("ann"), {"held_token": 1, "updated_time": 500}),
        ],
        [Granted(1, 500, again=True, mark=KEPT)],
    ),
    "a hold granted to another process is kept by acquiring": Situation(
        state({1: held("ann", 500)}),
        [Acquire("ann")],
        [
            update(token_key(1), {"holder": "ann", "held_token": KEPT}, expect=RENEWED),
            insert(owner_key("ann"), {"held_token": 1, "updated_time": 500}),
        ],
        [Granted(1, 500, again=True, mark=KEPT)],
    ),
    "a slot for a caller who is gone is given back as nobody was told of it": Situation(
        state({1: held("ann", 500)}),
        [Release("ann", 500, untold=True)],
        [
            update(token_key(1), {"holder": FREE, "updated_time": NOW}, expect=RENEWED),
            delete(owner_key("ann")),
            queue(0, marked=MARK),
        ],
        [Released(1)],
        setting=OURS,
    ),
    "a slot for a caller who is gone is handed on as nobody was told of it": Situation(
        state({1: held("ann", 500)}, waiter(3, "eve", "us"), last=3),
        [Release("ann", 500, untold=True)],
        [
            update(token_key(1), {"holder": "eve", "updated_time": NOW, "held_token": TAKEN}, expect=RENEWED),
            insert(owner_key("eve"), {"held_token": 1, "updated_time": NOW}, absent=True),
            delete(owner_key("ann")),
            *gone(3, "eve", "us"),
            head(3),
        ],
        [Released(1)],
        setting=replace(OURS, leases={"eve": None}),
        served=[("eve", Granted(1, NOW, mark=TAKEN))],
    ),
    "a slot that another process keeps is not given back for a caller who is gone": Situation(
        state({1: Token("ann", 500, None, KEPT)}),
        [Release("ann", 500, untold=True), Cancel("ann", keep=True, unwanted=True)],
        [],
        [NotHeld(), Cancelled(None)],
        setting=OURS,
    ),
    "what nobody gives back, and what is ours, is held again without a batch": Situation(
        state({1: held("ann", 500), 2: Token("bob", 500, None, KEPT)}),
        [Acquire("ann"), Acquire("bob")],
        [],
        [Granted(1, 500, again=True), Granted(2, 500, again=True, mark=KEPT)],
        setting=OURS,
    ),
    "a place is kept by rows with a new end": Situation(
        state(TWO, waiter(3, "eve", "us"), last=3),
        [Stay("eve")],
        [
            update(waiter_key(3, "us"), {"holder": "eve"}, expect={"holder": ("eve",)}, ttl_s=WAITER_S),
            insert(waiter_key(3, "us"), {"updated_time": 400}, ttl_s=WAITER_S),
            insert(waiting_owner_key("eve"), {"holder": ticket_text(3)}, ttl_s=WAITER_S),
        ],
        [Stayed()],
    ),
    "another process takes over the place that its owner has": Situation(
        state(TWO, waiter(3, "eve"), last=3),
        [Acquire("eve", wait=True)],
        [
            delete(waiter_key(3, "they"), expect={"holder": ("eve",)}),
            insert(waiter_key(3, "us"), {"holder": "eve", "updated_time": 400}, absent=True, ttl_s=WAITER_S),
            insert(waiting_owner_key("eve"), {"holder": ticket_text(3)}, ttl_s=WAITER_S),
        ],
        [Queued(3)],
    ),
    "what changes nothing is answered without a batch": Situation(
        state(TWO, waiter(3, "eve", "us"), last=3),
        [
            Acquire("fay"),
            Acquire("eve"),
            Acquire("eve", wait=True),
            Release("fay"),
            Release("bob", fence=499),
            Renew("fay", 30),
            Cancel("fay"),
            Stay("fay"),
        ],
        [],
        [
            Full(2, 1),
            Full(2, 1),
            Queued(3),
            NotHeld(),
            Stale(2, 500),
            NotHeld(),
            Cancelled(None),
            Cancelled(None),
        ],
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_plan_writes_and_guards_exactly(situation: Situation) -> None:
    made = planned(situation.known, *situation.asked, setting=situation.setting)
    assert in_order(made.writes) == in_order(situation.writes)
    assert answers(made) == dict(enumerate(situation.answers))
    assert made.served == list(situation.served)
    assert not made.later
    assert not made.look
    if made.writes:
        Batch(TOKENS, KEY, tuple(made.writes))


# What may be answered when


@pytest.mark.parametrize(
    "operation", [Acquire("fay"), Release("fay"), Release("ann", 1), Renew("fay", 9), Cancel("fay")]
)
def test_nobody_is_told_no_from_a_state_read_before_it_asked(operation: Operation) -> None:
    made = plan(state(TWO), [Ask(operation, fresh=False)], SETTING)
    assert made.later == [0]
    assert made.look
    assert not made.writes
    assert not answers(made)


@pytest.mark.parametrize("operation", [Acquire("fay"), Release("ann"), Renew("ann", 9)])
def test_what_a_guard_decides_needs_no_new_state(operation: Operation) -> None:
    made = plan(state({1: held("ann"), 2: Token()}), [Ask(operation, fresh=False)], SETTING)
    assert made.writes
    assert list(answers(made)) == [0]
    assert not made.later


def test_release_whose_earlier_attempt_may_have_applied_counts_as_done() -> None:
    made = plan(state(TWO), [Ask(Release("eve"), unsure=True)], SETTING)
    assert answers(made) == {0: Released(None)}


def test_grant_that_an_earlier_attempt_wrote_is_no_repetition() -> None:
    ask = Ask(Acquire("ann"), unsure=True, tried=frozenset({(1, 500, None)}))
    assert answers(plan(state(TWO), [ask], SETTING)) == {0: Granted(1, 500)}
    ask = Ask(Acquire("ann"), unsure=True, tried=frozenset({(1, 499, None)}))
    assert answers(plan(state(TWO), [ask], SETTING)) == {0: Granted(1, 500, again=True, mark=KEPT)}


def test_nobody_is_told_of_a_kept_hold_from_a_state_read_before_it_asked() -> None:
    kept = state({1: Token("ann", 500, None, KEPT)})
    made = plan(kept, [Ask(Acquire("ann"), fresh=False)], SETTING)
    assert made.later == [0]
    assert not answers(made)

"""Whatever a bucket has gone through and whatever is asked: a plan applies, and what it promises holds."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

from contract.partition import Partition
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slotkeeper.database import Applied
from slotkeeper.owner import FREE
from slotkeeper.semaphore.operations import Acquire, Cancel, Full, Granted, Operation, Release, Renew, Stay
from slotkeeper.semaphore.plan import plan
from slotkeeper.semaphore.planned import Ask, Plan, Setting
from slotkeeper.semaphore.rows import OWNER, TOKEN, WAITER, WAITING_OWNER, owner_key, waiter_key, waiting_owner_key
from slotkeeper.semaphore.state import State

SIZE = 2
OWNERS = [f"owner {letter}" for letter in "abcde"]
CLIENTS = ["here", "there"]
LEASES = st.sampled_from([None, None, 2, 7, 60])


@dataclass(frozen=True)
class Step:
    """Time passes, then one client plans what its callers ask: from the bucket as it is, or as it was some steps ago."""

    pause_s: int
    client_id: str
    asked: Sequence[Operation]
    skew_ms: int
    place: int
    age: int
    leases: dict[str, int | None]


def operations() -> st.SearchStrategy[Operation]:
    """Draw one operation, its fence perhaps that of a hold."""
    owners, fences = st.sampled_from(OWNERS), st.none() | st.integers(1, 5)
    acquire = st.builds(Acquire, owners, LEASES, st.sampled_from([True, True, False]))
    others = (
        st.builds(Release, owners, fences),
        st.builds(Renew, owners, LEASES, fences),
        st.builds(Cancel, owners),
        st.builds(Stay, owners),
    )
    return st.one_of(acquire, acquire, *others)


def steps() -> st.SearchStrategy[list[Step]]:
    """Draw the life of a bucket."""
    step = st.builds(
        Step,
        pause_s=st.sampled_from([0, 0, 0, 0, 1, 4, 20]),
        client_id=st.sampled_from(CLIENTS),
        asked=st.lists(operations(), min_size=1, max_size=5),
        skew_ms=st.sampled_from([0, 0, 1, -5000, 5000]),
        place=st.integers(1, SIZE),
        age=st.sampled_from([0, 0, 1, 1, 2]),
        leases=st.dictionaries(st.sampled_from(OWNERS), LEASES, max_size=2),
    )
    return st.lists(step, min_size=2, max_size=8)


def setting(step: Step, number: int, now_s: float) -> Setting:
    """Return what a step's plan takes from its surroundings."""
    wall_ms = 10_000_000 + round(now_s * 1000) + step.skew_ms
    return Setting(step.client_id, now_s, wall_ms, number, step.place, step.leases)


def planned(step: Step, number: int, known: State, now_s: float) -> Plan:
    """Plan a step."""
    return plan(known, [Ask(fitting(operation, known)) for operation in step.asked], setting(step, number, now_s))


def fitting(operation: Operation, known: State) -> Operation:
    """Give an operation that names an even fence the one of its owner's hold."""
    number = known.held.get(operation.owner_id)
    if number is None or (getattr(operation, "fence", None) or 1) % 2:
        return operation
    assert isinstance(operation, Release | Renew)
    return replace(operation, fence=known.tokens[number].version)


@settings(deadline=None, max_examples=200)
@given(steps())
def test_any_life_of_a_bucket_keeps_every_promise(life: list[Step]) -> None:
    partition = Partition(range(1, SIZE + 1))
    seen = [partition.read()]
    for number, step in enumerate(life):
        partition.model.now_s += step.pause_s
        before = partition.read()
        known = deepcopy(seen[-1 - step.age]) if 0 < step.age < len(seen) else partition.read()
        made = planned(step, number, known, partition.model.now_s)
        everyone_is_answered_or_put_off(step, made)
        applied = bool(made.writes) and applies(partition, made)
        assert applied or step.age or not made.writes, "refused, though nothing had changed since the state was read"
        if applied:
            what_was_planned_is_what_is_there(partition, made, known, fresh=step.age == 0)
        after = partition.read()
        rows_agree(partition, after)
        if not step.age and (applied or not made.writes):
            nobody_waits_for_what_it_has(after)
        if applied or not made.writes:
            nobody_passes_the_line(before, after, made, step)
        versions_and_tickets_grow(before, after)
        seen.append(after)


def applies(partition: Partition, made: Plan) -> bool:
    """Commit a plan, and tell whether it applied; a batch that no store would take raises, a refused one changes nothing."""
    rows = partition.rows()
    applied = isinstance(partition.commit(made.writes), Applied)
    assert applied or partition.rows() == rows
    return applied


def everyone_is_answered_or_put_off(step: Step, made: Plan) -> None:
    """Each operation has one answer, or waits for the next plan; an owner has one operation a batch."""
    told = [index for index, _ in (*made.at_once, *made.after)]
    assert sorted([*told, *made.later]) == list(range(len(step.asked)))
    carried = [step.asked[index].owner_id for index, answer in made.after if not isinstance(answer, Full)]
    assert len(carried) == len(set(carried))


def what_was_planned_is_what_is_there(partition: Partition, made: Plan, known: State, *, fresh: bool) -> None:
    """The state that the loop goes on with is the one that it would read."""
    made.apply(known)
    there = partition.read()
    for number in made.tokens:  # somebody else's renewal since the reading shows at the next one, by its mark
        assert replace(known.tokens[number], mark=there.tokens[number].mark) == there.tokens[number]
    if fresh:
        assert {**there.tokens} == known.tokens
        assert (there.last, there.mark, there.head) == (known.last, known.mark, known.head)
        assert there.line == known.line
        assert (there.held, there.waiting) == (known.held, known.waiting)


def rows_agree(partition: Partition, now: State) -> None:
    """A token has its owner's row, an owner one token at most; and the same of tickets and those who wait."""
    owners = partition.of_type(OWNER)
    holders = {token.holder: number for number, token in now.tokens.items() if token.holder is not None}
    assert len(holders) == sum(token.holder is not None for token in now.tokens.values())
    assert set(owners) == {owner_key(holder) for holder in holders}
    for holder, number in holders.items():
        expected = {"held_token": number, "updated_time": now.tokens[number].version}
        assert owners[owner_key(holder)] == expected
    assert set(partition.of_type(WAITER)) == {waiter_key(w.ticket, w.client_id) for w in now.line.values()}
    assert set(partition.of_type(WAITING_OWNER)) == {waiting_owner_key(w.owner_id) for w in now.line.values()}
    if now.line:  # a slot whose lease ended may lie idle until somebody looks; one that was given back may not
        assert not [key for key, values in partition.of_type(TOKEN).items() if values.get("holder") == FREE]


def nobody_waits_for_what_it_has(now: State) -> None:
    """Two processes that act for one owner may get it a slot and a place. Whoever looks next takes the place away."""
    assert not now.held.keys() & now.waiting.keys()


def nobody_passes_the_line(before: State, after: State, made: Plan, step: Step) -> None:
    """Slots go to those who wait longest; a newcomer has one only where nobody waits any more; none lies idle meanwhile."""
    stayed = set(before.line) & set(after.line)
    served = {ticket for ticket, waiter in before.line.items() if waiter.owner_id in after.held}
    if stayed and served:
        assert max(served) < min(stayed)
    fresh = {step.asked[i].owner_id for i, answer in made.after if isinstance(answer, Granted) and not answer.again}
    if fresh - set(before.waiting):
        assert not stayed
    if stayed:
        idle = {number for number, token in after.tokens.items() if token.holder is None}
        unseen = {n for n, token in before.tokens.items() if token.holder is None} if step.age else set()
        assert idle <= unseen


def versions_and_tickets_grow(before: State, after: State) -> None:
    """A token that changes hands has a larger version, and no ticket is given twice."""
    assert after.last >= before.last
    assert all(ticket > before.last for ticket in set(after.line) - set(before.line))
    for number, token in after.tokens.items():
        old = before.tokens[number]
        assert (token.version or 0) >= (old.version or 0)
        if token.holder is not None and token.holder != old.holder:
            assert (token.version or 0) > (old.version or 0)


@given(st.lists(operations(), max_size=30), st.integers(1, SIZE))
def test_planning_is_a_function_of_what_it_is_given(asked: list[Operation], place: int) -> None:
    step = Step(0, "here", asked, 0, place, 0, {})
    partition = Partition(range(1, SIZE + 1))
    first, second = (planned(step, 1, partition.read(), 0.0) for _ in range(2))
    assert (first.writes, first.at_once, first.after, first.later) == (
        second.writes,
        second.at_once,
        second.after,
        second.later,
    )

"""What must hold in every state of a bucket, and of every step from one to the next."""

from __future__ import annotations

from simulator.picture import Picture


class Violation(AssertionError):
    """A promise was broken."""


def check_state(now: Picture, tokens: range) -> None:
    """Check what one look at the partition shows."""
    holders = {held.owner: token for token, held in now.held.items()}
    _must(len(holders) == len(now.held), "an owner holds two tokens", now.held)
    _must(all(token in tokens for token in now.held), "a token that the semaphore has not is held", now.held)
    for owner, token in holders.items():
        _must(owner in now.owners, f"{owner} holds {token}, and has no owner row", now.owners)
    for owner, (token, end) in now.owners.items():
        _must(holders.get(owner) == token, f"the owner row of {owner} names {token}, which it does not hold", now.held)
        _must(now.held[token].end == end, f"token {token} and its owner row end at different times", now.held)
    _check_line(now)


def _check_line(now: Picture) -> None:
    owners = {place.owner: ticket for ticket, place in now.line.items()}
    _must(len(owners) == len(now.line), "an owner stands in line twice", now.line)
    for ticket, place in now.line.items():
        _must(now.head < ticket <= now.last, f"ticket {ticket} is not between head and last", now.head, now.last)
        _must(now.waiting.get(place.owner) == (ticket, place.end), f"no row leads from {place.owner} to its ticket")
    for owner, (ticket, _) in now.waiting.items():
        _must(owners.get(owner) == ticket, f"a row leads from {owner} to ticket {ticket}, which is not in line")


def check_step(before: Picture, after: Picture) -> None:
    """Check what a batch made of the partition. Both pictures are of the moment at which it applied."""
    _must(after.last >= before.last, "the last ticket went back", before.last, after.last)
    newcomers = [ticket for ticket in after.line if ticket > before.last]
    _must(not (after.given_back and newcomers), "somebody queues, and a slot that was given back is free", after.line)
    for token, version in after.versions.items():
        _must(version >= before.versions.get(token, version), f"the version of token {token} went back")
    for token, held in after.held.items():
        was = before.held.get(token)
        if was is None or was.owner != held.owner:
            _must(held.version > before.versions.get(token, -1), f"a grant of token {token} without a new fence")
            _check_turn(before, after, held.owner)


def _check_turn(before: Picture, after: Picture, owner: str) -> None:
    """Check that nobody who queued earlier and still waits is passed over. Who holds does not wait."""
    holders = {held.owner for held in before.held.values()}
    mine = before.waiting.get(owner, (None, 0))[0]
    for ticket, place in before.line.items():
        if ticket in after.line and place.owner != owner and place.owner not in holders:
            _must(mine is not None and mine < ticket, f"{owner} is admitted before {place.owner}, ticket {ticket}")


def _must(holds: bool, text: str, *shown: object) -> None:
    if not holds:
        raise Violation(" ".join((text, *map(str, shown))))

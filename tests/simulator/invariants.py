"""What must hold in every state of a bucket, and of every step from one to the next."""

from __future__ import annotations

from math import inf
from typing import NoReturn

from schedules.history import Violation

from simulator.picture import Picture


def check_state(now: Picture, tokens: range) -> None:
    """Check what one look at the partition shows."""
    holders = {}
    for token, held in now.held.items():
        holders[held.owner] = token
        if token not in tokens:
            _broken("a token that the semaphore has not is held", now.held)
        if held.owner not in now.owners:
            _broken(f"{held.owner} holds {token}, and has no owner row", now.owners)
    if len(holders) != len(now.held):
        _broken("an owner holds two tokens", now.held)
    for owner, (token, end) in now.owners.items():
        if holders.get(owner) != token:
            _broken(f"the owner row of {owner} names {token}, which it does not hold", now.held)
        if now.held[token].end != end:
            _broken(f"token {token} and its owner row end at different times", now.held)
    if now.line or now.waiting:
        _check_line(now)


def _check_line(now: Picture) -> None:
    owners = {place.owner: ticket for ticket, place in now.line.items()}
    if len(owners) != len(now.line):
        _broken("an owner stands in line twice", now.line)
    for ticket, place in now.line.items():
        if not now.head < ticket <= now.last:
            _broken(f"ticket {ticket} is not between head and last", now.head, now.last)
        if now.waiting.get(place.owner) != (ticket, place.end):
            _broken(f"no row leads from {place.owner} to its ticket")
    for owner, (ticket, _) in now.waiting.items():
        if owners.get(owner) != ticket:
            _broken(f"a row leads from {owner} to ticket {ticket}, which is not in line")


def check_step(before: Picture, after: Picture) -> None:
    """Check what a batch made of the partition. Both pictures are of the moment at which it applied."""
    if after.last < before.last:
        _broken("the last ticket went back", before.last, after.last)
    if after.given_back and any(ticket > before.last for ticket in after.line):
        _broken("somebody queues, and a slot that was given back is free", after.line)
    for token, version in after.versions.items():
        if version < before.versions.get(token, version):
            _broken(f"the version of token {token} went back")
    for token, held in after.held.items():
        was = before.held.get(token)
        if was is None or was.owner != held.owner:
            if held.version <= before.versions.get(token, -1):
                _broken(f"a grant of token {token} without a new fence")
            _check_turn(before, after, held.owner)


def _check_turn(before: Picture, after: Picture, owner: str) -> None:
    """Check that nobody who queued earlier and still waits is passed over. Who holds does not wait."""
    if not before.line:
        return
    holders = {held.owner for held in before.held.values()}
    mine = before.waiting.get(owner, (inf, 0))[0]
    for ticket, place in before.line.items():
        if ticket in after.line and place.owner != owner and place.owner not in holders and mine >= ticket:
            _broken(f"{owner} is admitted before {place.owner}, ticket {ticket}")


def _broken(text: str, *shown: object) -> NoReturn:
    raise Violation(" ".join((text, *map(str, shown))))

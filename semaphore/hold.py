"""A hold: the answer to a granted acquire."""

from __future__ import annotations

from dataclasses import dataclass

from ..owner import Owner


@dataclass(frozen=True, slots=True)
class Hold:
    """A slot that an owner holds.

    `fence` only grows for a token: hand it to whatever the holder writes elsewhere, and let that refuse a smaller one.
    `again` tells that the owner held the token already.
    """

    semaphore: str
    owner: Owner
    token: int
    fence: int
    again: bool = False

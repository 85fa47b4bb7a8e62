"""How large a schedule is. Most are small: what a protocol gets wrong, few owners and few steps show first, and cheaply."""

from __future__ import annotations

from typing import NamedTuple


class Size(NamedTuple):
    """What comes on top of one client, two owners, a caller for each and one turn of each: `int(n * random())` more."""

    clients: float
    owners: float
    callers: float
    turns: float
    trouble: float  # how much of it there is
    waits: tuple[float, ...]


SMALL = Size(clients=1.7, owners=1.1, callers=1.1, turns=1.0, trouble=0.7, waits=(0.0, 0.0, 0.05, 0.4, 1.5, 3.0))
LARGE = Size(
    clients=2.6,
    owners=3.0,
    callers=1.5,
    turns=2.3,
    trouble=1.0,
    waits=(0.0, 0.0, 0.0, 0.05, 0.4, 0.4, 1.5, 1.5, 1.5, 3.0, 3.0, 3.0, 6.0, 40.0),
)
TWINS = Size(clients=1.0, owners=1.0, callers=1.0, turns=2.3, trouble=1.0, waits=(0.0, 0.0, 0.05, 0.4, 1.5, 3.0, 6.0))
SMALL_SHARE = 0.95  # of those in which nobody shares an owner

"""A bucket's partition at one moment, as the invariants speak of it."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from slotkeeper.database.simulated import Rows
from slotkeeper.owner import FREE
from slotkeeper.semaphore.rows import HEAD, OWNER, QUEUE, TOKEN, WAITER, WAITING_OWNER

NOTHING = (None, inf)


class Held(NamedTuple):
    """A token row: its holder, its version, when the hold ends."""

    owner: str
    version: int
    end: float


class Place(NamedTuple):
    """A waiter row: who waits, through which client, and when the row ends."""

    owner: str
    client: str
    end: float


class Picture:
    """Who holds and who waits, by both indexes."""

    __slots__ = ("free", "given_back", "head", "held", "last", "line", "owners", "versions", "waiting")

    def __init__(self, rows: Rows, tokens: range, now: float) -> None:
        self.held: dict[int, Held] = {}
        self.owners: dict[str, tuple[int, float]] = {}
        self.line: dict[int, Place] = {}
        self.waiting: dict[str, tuple[int, float]] = {}
        self.versions: dict[int, int] = {}
        self.last = self.head = self.given_back = 0
        for key, row in rows.items():
            kind: Any
            token: Any
            name: Any
            kind, token, name = key
            cells: dict[str, tuple[Any, float]] = row.cells
            if kind == OWNER:
                held_token, end = cells["held_token"]
                if end > now:
                    self.owners[name] = (held_token, end)
                continue
            holder, end = cells.get("holder", NOTHING)
            if holder is None or end <= now:
                holder = None
            if kind == TOKEN:
                self.versions[token] = cells["updated_time"][0]
                if holder == FREE:
                    self.given_back += 1
                elif holder is not None:
                    self.held[token] = Held(holder, self.versions[token], end)
            elif holder is None:
                continue
            elif kind == WAITER:
                ticket, _, client = name.partition("/")
                self.line[int(ticket)] = Place(holder, client, end)
            elif kind == WAITING_OWNER:
                self.waiting[name] = (int(holder), end)
            elif kind == QUEUE:
                self.last = int(holder)
            elif kind == HEAD:
                self.head = int(holder)
        self.free = len(tokens) - len(self.held)

"""What a plan is made from, and what it comes to: operations as their bucket sees them, its surroundings, a guarded batch."""

from __future__ import annotations

from collections.abc import Container, Mapping

from msgspec import Struct

from ..database import Write
from .operations import Answer, Granted, Operation
from .state import State, Token, Waiter

Hold = tuple[int, int, int | None]  # a token, its version, its mark

PROVISIONAL_S = 5  # how long a slot handed to another process waits for it to confirm
WAITER_S = 30  # how long a waiter that nobody renews keeps its place


class Ask(Struct, frozen=True):
    """An operation as its bucket sees it. `fresh`: the state was read after it came, so that it may be told No.

    `unsure`: an earlier attempt of it may have applied; `tried` has the holds that such attempts may have granted.
    `stood`: it has stood in line, so a slot that its owner holds was handed to it.
    """

    operation: Operation
    fresh: bool = True
    unsure: bool = False
    tried: frozenset[Hold] = frozenset()
    stood: bool = False


class Setting(Struct, frozen=True):
    """What a plan takes from its surroundings: who plans, the clocks, the next random mark, where to take tokens from.

    `leases` are those that the owners who wait in this process asked for; `ours` has the holds granted to its callers.
    """

    client_id: str
    now: float
    wall_ms: int
    mark: int
    place: int = 0
    leases: Mapping[str, int | None] = {}
    ours: Container[Hold] = frozenset()


class Plan(Struct):
    """A batch's writes, what they make of the state, and what each operation is answered.

    `at_once` needs no write; `after` holds when the batch applied; `later` has the operations left for the next plan, and
    `look` tells that some of those need a newer state first.
    """

    writes: list[Write] = []
    tokens: dict[int, Token] = {}
    joined: list[Waiter] = []
    left: list[int] = []
    last: int | None = None
    mark: int | None = None
    head: int | None = None
    at_once: list[tuple[int, Answer]] = []
    after: list[tuple[int, Answer]] = []
    served: list[tuple[str, Granted]] = []  # owners that waited in this process
    later: list[int] = []
    look: bool = False

    def apply(self, state: State) -> None:
        """Make the state what the applied batch made of the partition."""
        for ticket in self.left:
            state.leave(ticket)
        for number, token in self.tokens.items():
            state.put(number, token)
        for waiter in self.joined:
            state.join(waiter)
        state.last = state.last if self.last is None else self.last
        if self.mark is not None:
            state.mark, state.mark_is_ours = self.mark, True
        state.head = state.head if self.head is None else self.head

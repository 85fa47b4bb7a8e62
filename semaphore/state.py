"""What is known of a bucket: its tokens, who holds them, and who waits. Read from the partition, kept up by our own batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from ..database import Row
from .rows import CLOSED, HEAD, QUEUE, TOKEN, is_free, number, text


class Token(Struct, frozen=True):
    """A token row. `version` is None where there is no row; `ends_at` is when the hold's lease ends, on the port's clock.

    `mark` is a random value that changes with each renewal: a late one meets another, and takes no newer lease away.
    """

    holder: str | None = None
    version: int | None = None
    ends_at: float | None = None
    mark: int | None = None


class Waiter(Struct, frozen=True):
    """A waiter row: who waits, through which client, since when (ms since the epoch)."""

    ticket: int
    client_id: str
    owner_id: str
    since_ms: int | None = None


@dataclass(slots=True)
class State:
    """A bucket as last seen. `as_of` is when the reading began: what was decided before that is in it, if it was `serial`;
    otherwise what was also told.
    """

    tokens: dict[int, Token]
    last: int = 0
    mark: int | None = None
    head: int = 0
    closed_ms: int | None = None
    line: dict[int, Waiter] = field(default_factory=dict)
    as_of: float = float("-inf")
    serial: bool = True
    mark_is_ours: bool = False  # written by us, perhaps over another one: slots may have become free unseen
    numbers: tuple[int, ...] = field(init=False)  # of its tokens, in order
    held: dict[str, int] = field(init=False)
    waiting: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = tuple(sorted(self.tokens))
        self.held = {token.holder: number for number, token in self.tokens.items() if token.holder is not None}
        self.waiting = {waiter.owner_id: waiter.ticket for waiter in self.line.values()}

    def put(self, number: int, token: Token) -> None:
        """Take over a changed token row."""
        before = self.tokens[number].holder
        if before is not None and self.held.get(before) == number:
            del self.held[before]
        self.tokens[number] = token
        if token.holder is not None:
            self.held[token.holder] = number

    def join(self, waiter: Waiter) -> None:
        """Take over a new waiter row, or one that another client has taken over."""
        self.line[waiter.ticket] = waiter
        self.waiting[waiter.owner_id] = waiter.ticket

    def leave(self, ticket: int) -> None:
        """Forget a waiter."""
        waiter = self.line.pop(ticket, None)
        if waiter is not None and self.waiting.get(waiter.owner_id) == ticket:
            del self.waiting[waiter.owner_id]


def from_rows(rows: Iterable[Row], tokens: Iterable[int], *, began_at: float) -> State:
    """Build a state from a snapshot's rows. Token rows outside `tokens` are nobody's slots and left out."""
    state_tokens = dict.fromkeys(tokens, Token())
    singles: dict[int, Row] = {}
    for row in rows:
        kind, token = number(row, "type"), number(row, "token_id")
        if kind == TOKEN and token in state_tokens:
            state_tokens[token] = token_from_row(row, began_at)
        elif kind is not None and kind != TOKEN:
            singles[kind] = row
    queue: Row = singles.get(QUEUE, {})
    return State(
        state_tokens,
        last=int(text(queue, "holder") or 0),
        mark=number(queue, "held_token"),
        head=int(text(singles.get(HEAD, {}), "holder") or 0),
        closed_ms=_closed_ms(singles.get(CLOSED)),
        as_of=began_at,
    )


def token_from_row(row: Row, now: float) -> Token:
    """Read a token row; a lease is counted from `now`, so that it never seems to end late."""
    holder, ttl_s = text(row, "holder"), row.get("ttl(holder)")
    version, mark = number(row, "updated_time"), number(row, "held_token")
    if is_free(holder):
        return Token(None, version, mark=mark)
    return Token(holder, version, now + ttl_s if isinstance(ttl_s, int) else None, mark)


def waiter_from_row(row: Row) -> Waiter | None:
    """Read a waiter row, or None where its holder cell has just ended."""
    ticket, _, client_id = (text(row, "owner_id") or "").partition("/")
    owner_id = text(row, "holder")
    if owner_id is None or not ticket.isdecimal():
        return None
    return Waiter(int(ticket), client_id, owner_id, number(row, "updated_time"))


def _closed_ms(row: Mapping[str, object] | None) -> int | None:
    holder = row.get("holder") if row else None
    return int(holder) if isinstance(holder, str) and holder.isdecimal() else None

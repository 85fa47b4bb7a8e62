"""What a refusal shows: often all that the next plan lacks, so that nothing need be read."""

from __future__ import annotations

from ..database import Absent, Batch, Condition, Expect, Refused, Row
from .rows import QUEUE_KEY, TOKEN, number, text
from .state import State, token_from_row


def correct(state: State, batch: Batch, refused: Refused, now: float) -> bool:
    """Take over the token rows that a refusal shows. Tell whether they alone stood in the way.

    Anything else wants a reading: another last ticket or free mark means waiters or slots not seen yet, a waiter that is
    gone or an owner's row a grant not seen yet.
    """
    broken = {w.key: refused.rows.get(w.key) for w in batch.writes if not _met(w.condition, refused.rows.get(w.key))}
    rows = [row for row in broken.values() if row is not None and row.get("type") == TOKEN and "held_token" in row]
    if len(rows) < len(broken):
        return False
    for row in rows:
        # Its lease is not shown: it counts as ended, so that whoever holds on to it writes it anew.
        state.put(number(row, "token_id") or 0, token_from_row({**row, "ttl(holder)": 0}, now))
    return True


def note_last(state: State, refused: Refused) -> None:
    """Take over the last ticket that a refusal shows, so that one reading of the line will do."""
    if (row := refused.rows.get(QUEUE_KEY)) is not None:
        state.last = int(text(row, "holder") or 0)


def _met(condition: Condition, row: Row | None) -> bool:
    if isinstance(condition, Expect):
        return condition.met_by(row)
    return row is None or not isinstance(condition, Absent)

"""Settling an unknown outcome of the cluster's rows: until the database says what became of it or it is too late."""

from __future__ import annotations

from ...database import Applied, Batch, Port, Refused, settling
from ..errors import LockUnavailable


class Unsettled(LockUnavailable):
    """The database did not say in time what became of a change. It is treated as if it had not applied, and never trusted."""


async def settled(port: Port, batch: Batch, deadline: float) -> Applied | Refused:
    """Commit a batch that can apply only once. A refusal may be due to an earlier attempt of its own: look at the row.

    Raises Unsettled at the deadline, and a DatabaseError when nothing happened.
    """
    try:
        return (await settling.settled(port, batch, deadline)).outcome
    except settling.StillUnknown as error:
        raise Unsettled from error.__cause__

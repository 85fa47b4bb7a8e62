"""Appending batches, one at a time, and finding out what became of one that was left open."""

from __future__ import annotations

from ..database import DatabaseError
from .batch import Batch
from .errors import Fenced, JournalFailed, OutcomeUnknown
from .journal import Journal, Unsettled
from .port import Port


class Keeping:
    """The batch on its way to the journal. It belongs to the store, not to the caller who sent it and may be gone."""

    def __init__(self, port: Port, journal: Journal) -> None:
        self._port, self._journal = port, journal
        self.unsettled: Batch | None = None
        self.crowd, self.trip_s = 0, 0.0  # how many the last append answered, and how long it took

    async def append(self, batch: Batch, deadline: float) -> Exception | None:
        """Append a batch's records. Return None when they are durable, or why they are not and never will be.

        Raises OutcomeUnknown at the deadline. Then, and when it is interrupted, the batch is to be settled before the next.
        """
        began, self.unsettled = self._port.now(), batch
        try:
            await self._journal.append(batch.records, deadline)
        except (JournalFailed, Fenced, DatabaseError) as error:
            self.unsettled = None
            return error
        except Unsettled as error:
            raise OutcomeUnknown from error
        self.unsettled = None
        self.crowd, self.trip_s = len(batch.answers), self._port.now() - began
        return None

    async def settle(self, batch: Batch, deadline: float) -> Exception | None:
        """Find out what became of the batch that was left open. Return and raise as `append` does."""
        try:
            is_in = await self._journal.settle(deadline)
        except Fenced as error:
            self.unsettled = None
            return error
        except Unsettled as error:
            raise OutcomeUnknown from error
        self.unsettled = None
        return None if is_in else JournalFailed()

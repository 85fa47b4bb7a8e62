"""The calls that wait to be planned, in order. Any thread may put some in; only the bucket's leader takes them out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from .call import Call
from .operations import NotHeld
from .told import Told


class Inbox:
    """What a bucket has been asked, and has not planned."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(list(self._calls))

    def enter(self, call: Call) -> None:
        """Put a call in, behind the others."""
        self._calls.append(call)

    def enter_again(self, calls: Iterable[Call]) -> None:
        """Put calls that were taken out back in, each before the others. One that is in already will be taken out once."""
        for call in calls:
            self._calls.appendleft(call)
            call.claim.take()  # it may be free: only what is taken can be given
            call.claim.give()

    def claimed(self, told: Told) -> list[Call]:
        """Take everything out that its caller has not given up; one that goes alone, alone."""
        claimed: list[Call] = []
        while self._calls and not (claimed and (claimed[0].alone or self._calls[0].alone)):
            call = self._calls.popleft()
            if call.abandoned or not call.claim.take():
                continue
            if call.gives_back is not None and not told.is_owed(*call.gives_back):
                call.succeed(NotHeld())  # meanwhile somebody was told that it holds this
            else:
                claimed.append(call)
        return claimed

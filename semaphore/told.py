"""Who was told here that it holds a token. Callers for one owner share its slot: it is given back for one that was cancelled
only when no other relies on it, here or, as its mark shows, in another process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from .mark import is_kept
from .operations import Granted
from .planned import Hold


@dataclass(slots=True)
class _Told:
    fence: int
    marks: set[int | None] = field(default_factory=set)  # under which it is this process's to give back
    callers: int = 0
    owed: bool = False  # it was taken for a caller who never knew


class Told:
    """What the callers of one bucket were told of each token's present hold."""

    def __init__(self) -> None:
        self._by_token: dict[int, _Told] = {}

    def tell(self, granted: Granted, callers: int = 1) -> None:
        """Note that callers rely on a hold from now on."""
        told = self._of(granted.token, granted.fence)
        told.callers += callers
        if not is_kept(granted.mark):
            told.marks.add(granted.mark)

    def untell(self, granted: Granted) -> None:
        """Note that one of them was cancelled before it knew."""
        told = self._of(granted.token, granted.fence)
        told.callers -= 1
        told.owed |= not granted.again

    def owe(self, hold: Hold) -> None:
        """Note that a hold may have been taken for a caller who was cancelled."""
        token, fence, mark = hold
        told = self._of(token, fence)
        told.owed = True
        told.marks.add(mark)

    def __contains__(self, hold: object) -> bool:
        """Tell whether a hold, as its row shows it, was granted to callers of this process, and taken on by no other."""
        token, fence, mark = cast(Hold, hold)
        told = self._by_token.get(token)
        return told is not None and told.fence == fence and mark in told.marks

    def is_owed(self, token: int, fence: int) -> bool:
        """Tell whether a hold must be given back: it was taken for nobody who knows, and nobody relies on it."""
        told = self._of(token, fence)
        return told.owed and not told.callers

    def _of(self, token: int, fence: int) -> _Told:
        told = self._by_token.get(token)
        if told is None or told.fence < fence:
            told = self._by_token[token] = _Told(fence)
        return told if told.fence == fence else _Told(fence)  # an older hold has ended: it is not owed

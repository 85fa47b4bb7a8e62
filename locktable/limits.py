"""How much a lock table takes on, so that no client can fill its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan

from .errors import BadLockRequest, NoName
from .lock import Request


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a table holds. A longer wait counts as `wait_s`; all else beyond a limit is refused.

    `remembered` is for released ids: when there are more within ten minutes, the oldest are forgotten, which lets a lock
    that was released come back from a node that has not heard of it, until its lease ends.
    """

    name_length: int = 256
    text_length: int = 256
    locks: int = 100_000
    waiters: int = 10_000
    waiters_a_name: int = 1_000
    wait_s: float = 3_600.0
    remembered: int = 200_000

    def checked(self, request: Request) -> Request:
        """Return a request that keeps to the limits. Raises NoName, BadLockRequest."""
        self.check_name(request.name)
        for what, text in (("node", request.node), ("holder", request.holder), ("request id", request.request)):
            self._check_text(what, text)
        self.check_lease(request.lease_s)
        if isnan(request.wait_s):
            raise BadLockRequest("A wait is a number of seconds.")
        return request if request.wait_s <= self.wait_s else replace(request, wait_s=self.wait_s)

    def check_name(self, name: str) -> None:
        """Raise NoName, or BadLockRequest for a name that is too long or cannot be printed."""
        if not name:
            raise NoName
        if len(name) > self.name_length or not name.isprintable():
            raise BadLockRequest(f"A lock's name is 1 to {self.name_length} printable characters, not {name[:300]!r}.")

    def check_lease(self, lease_s: float) -> None:
        """Raise BadLockRequest for what is no number."""
        if isnan(lease_s):
            raise BadLockRequest("A lease is a number of seconds.")

    def _check_text(self, what: str, text: str) -> None:
        if len(text) > self.text_length or not (text.isprintable() or not text):
            raise BadLockRequest(f"A {what} is at most {self.text_length} printable characters, not {text[:300]!r}.")

"""How a service says that it did not do what was asked: a problem document (RFC 9457) with a type that stays the same."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..errors import SlotkeeperError

TYPE = "urn:slotkeeper:problem:"
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1


class ProblemDocument(msgspec.Struct, kw_only=True):
    """An error document. Programs look at `type` and `status`, people at the rest."""

    type: str
    title: str
    status: int
    detail: str

    @property
    def name(self) -> str:
        """What the type ends in: what the problem is called among us."""
        return self.type.removeprefix(TYPE)


class Problem(SlotkeeperError):
    """The service does not do this; its `detail` says why, and what to do instead."""

    def __init__(self, status: int, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.name, self.detail = status, name, detail
        self.headers = {**({"retry-after": str(RETRY_AFTER_S)} if status == 503 else {}), **(headers or {})}
        super().__init__(detail)

    def document(self) -> ProblemDocument:
        """Return what a client is sent."""
        title = self.name.replace("-", " ")
        return ProblemDocument(type=TYPE + self.name, title=title, status=self.status, detail=self.detail)

"""Errors of locks as problem documents, with the titles that clients of such services know."""

from __future__ import annotations

from starlette.responses import Response

from ...errors import SlotkeeperError
from ...web.answers import refusal
from ...web.problem import TYPE, Problem
from ..errors import BadLockRequest, LockError, LockHeld
from ..node import Unreachable
from ..wire import PROBLEMS, UNREACHABLE, LockDocument, LockProblemDocument


class LockProblem(Problem):
    """A problem with a title of its own, and the lock that it is about."""

    def __init__(
        self, status: int, name: str, title: str, detail: str, *, lock: LockDocument | None = None, ahead: int = 0
    ) -> None:
        super().__init__(status, name, detail)
        self.title, self.lock, self.ahead = title, lock, ahead

    def document(self) -> LockProblemDocument:
        """Return what a client is sent."""
        return LockProblemDocument(
            type=TYPE + self.name,
            title=self.title,
            status=self.status,
            detail=self.detail,
            lock=self.lock,
            ahead=self.ahead,
        )


def invalid_body(detail: str) -> LockProblem:
    """Return the problem of a body that says nothing that can be done."""
    name, status, title = PROBLEMS[BadLockRequest]
    return LockProblem(status, name, title, detail)


def forbidden(detail: str) -> LockProblem:
    """Return the problem of a caller who may not."""
    return LockProblem(403, "forbidden", "Forbidden", detail)


def no_such_node(name: str) -> LockProblem:
    """Return the problem of a node that is not known here."""
    return LockProblem(404, "no-such-node", "No such node", f"No node {name:.300} is known here; /api/status has them.")


def problem_of(error: LockError, now: float) -> LockProblem:
    """Return the problem of an error, of whatever kind."""
    if isinstance(error, Unreachable):
        return LockProblem(503, UNREACHABLE, "Lock table", str(error))
    found = next((PROBLEMS[base] for base in type(error).__mro__ if base in PROBLEMS), None)
    name, status, title = found or ("unexpected", 500, "Unexpected")
    if isinstance(error, LockHeld):
        lock = LockDocument.of(error.lock, now)
        return LockProblem(status, name, title, str(error), lock=lock, ahead=error.ahead)
    return LockProblem(status, name, title, str(error))


def response_of(error: SlotkeeperError, now: float) -> Response | None:
    """Return the response that an error makes; None where it is none of ours."""
    return refusal(problem_of(error, now)) if isinstance(error, LockError) else None

"""What each error of the store is over HTTP."""

from __future__ import annotations

import logging

from starlette.responses import Response

from ...database import DatabaseError
from ...errors import SlotkeeperError
from ...web.answers import answer, refusal
from ...web.problem import Problem
from ..errors import UpdateError
from ..wire import PROBLEMS, Answer, Broken

CONFLICT, UNPROCESSABLE = 409, 422
logger = logging.getLogger(__name__)


def answered_error(error: SlotkeeperError) -> Response | None:
    """Return the response that an error is, None for one that nobody foresaw."""
    if isinstance(error, UpdateError):
        return answer(Answer(error=Broken.of(error)), UNPROCESSABLE if error.has_bugs else CONFLICT)
    name = next((name for name, (kind, _) in PROBLEMS.items() if isinstance(error, kind)), None)
    if name is None and isinstance(error, DatabaseError):
        name = "unavailable"
    if name is None:
        return None
    logger.warning("%s: %s%s", type(error).__name__, error, f" ({why})" if (why := str(error.__cause__ or "")) else "")
    return refusal(Problem(PROBLEMS[name][1], name, str(error)))

"""A task store at a service: `TaskClient` and `AsyncTaskClient` have the methods of a store, and raise its errors.

What runs on a `TaskStore` runs on a `TaskClient`. Three things are different: `open` asks nobody, so a service that is not
there shows with the first call; answers get lost on the way, so changes are asked for again under one `Idempotency-Key`; and a
claim that is interrupted may leave a task owned until its time has passed.

Give each client an owner of its own, for its life: `new_client_id()` draws one.
"""

from __future__ import annotations

from ...web.failures import BadAddress, BadToken, BadTrust
from .client import AsyncTaskClient, TaskClient, new_client_id
from .errors import AccessDenied, BadAnswer, ForkedClient, ServiceUnreachable

__all__ = [
    "AccessDenied",
    "AsyncTaskClient",
    "BadAddress",
    "BadAnswer",
    "BadToken",
    "BadTrust",
    "ForkedClient",
    "ServiceUnreachable",
    "TaskClient",
    "new_client_id",
]

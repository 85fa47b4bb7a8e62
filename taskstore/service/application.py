"""The service as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp

from ...web.application import Service
from ...web.metrics import Metrics
from ...web.stopping import Stopping
from ..store import AsyncTaskStore
from .changing import Changing
from .failures import answered_error
from .limits import Limits
from .looking import Looking

Numbers = Mapping[str, tuple[str, float]]
TITLE = "slotkeeper tasks"
PREFIX = "slotkeeper_tasks"


def application(
    store: AsyncTaskStore, *, stopping: Stopping, limits: Limits | None = None, tokens: Mapping[str, Any] | None = None
) -> ASGIApp:
    """Return the application over a store that is open, or will be.

    Whoever runs it sets `stopping` when it is to end, and closes the store after that. Who asks has to know one of the
    `tokens`, if there are any; what a token stands for means nothing here.
    """
    limits = limits or Limits()
    looking, changing, metrics = Looking(store, limits), Changing(store, limits, stopping), Metrics(PREFIX)
    metrics.watch(lambda: _numbers(store, changing))
    service = Service(
        title=TITLE,
        endpoints=[*looking.endpoints(), *changing.endpoints()],
        ready=lambda: store.task(0),  # it takes its turn, and is told what everybody else is told
        sorted_error=answered_error,
        stopping=stopping,
        metrics=metrics,
        tokens=tokens or {},
    )
    return service.application()


def _numbers(store: AsyncTaskStore, changing: Changing) -> Numbers:
    waiting: Numbers = {"claims_waiting": ("Claims that stand in line.", changing.waiting)}
    if not store.is_open:
        return waiting
    seen = store.glance()
    return {
        **waiting,
        "tasks": ("Tasks there are.", seen.size),
        "last_id": ("The last id that was given out.", seen.last_id),
        "behind": ("Changes that were answered and are not durable yet.", seen.behind),
        "behind_seconds": ("How long the oldest of those has been answered.", seen.behind_s),
    }

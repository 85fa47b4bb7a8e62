"""The service as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp

from ...web.application import Service
from ...web.metrics import Metrics
from ...web.stopping import Stopping
from ..errors import NotRebuilt
from ..node import Node, NoSpeaker
from .clients import Clients
from .counts import Counts
from .grants import Permit
from .nodes import Nodes
from .problems import response_of
from .waits import Waits

TITLE = "slotkeeper locks"
PREFIX = "slotkeeper_locks"


class LockService:
    """A node behind HTTP. Whoever runs it starts the node, and ends both."""

    def __init__(self, node: Node, *, stopping: Stopping, tokens: Mapping[str, Permit] | None = None) -> None:
        self.node, self.stopping, self.counts, self._waits = node, stopping, Counts(), Waits()
        self._clients = Clients(node, stopping, self._waits, self.counts)
        self._nodes = Nodes(node, stopping, self._waits)
        self._tokens = tokens or {}

    def application(self) -> ASGIApp:
        """Return the application. Who asks has to know one of the tokens, if there are any."""
        metrics = Metrics(PREFIX)
        metrics.watch(self._numbers)
        service = Service(
            title=TITLE,
            endpoints=[*self._clients.endpoints(), *self._nodes.endpoints()],
            ready=self.ready,
            sorted_error=lambda error: response_of(error, self.node.port.now()),
            stopping=self.stopping,
            metrics=metrics,
            tokens=self._tokens,
        )
        return service.application()

    async def ready(self) -> None:
        """Raise what keeps this node from getting a lock for anybody: no speaker, or one that does not answer."""
        status = await self.node.status()
        if status.speaks and not status.rebuilt:
            raise NotRebuilt
        if not status.speaks and status.speaker is None:
            raise NoSpeaker
        await self.node.locks()

    async def end_waits(self) -> None:
        """End what waits on without its client."""
        await self._waits.end()

    def _numbers(self) -> dict[str, tuple[str, float]]:
        node, counts = self.node, self.counts
        speaking = node.speaking
        return {
            "held": ("Locks that clients of this node hold.", len(node.held.locks())),
            "waiting": ("Requests in line in this node's table.", speaking.table.waiting),
            "speaks": ("1 where this node grants locks.", float(speaking.is_trusted)),
            "epoch": ("The epoch of the speaker that this node knows.", node.known.epoch or 0),
            "rebuild_seconds": ("How long the last rebuild of this node's table took.", speaking.rebuild_s),
            "granted": ("Grants to clients of this node since it began.", counts.granted),
            "renewed": ("Renewals by clients of this node since it began.", counts.renewed),
            "released": ("Releases by clients of this node since it began.", counts.released),
            "lost": ("Renewals that came too late since this node began.", counts.lost),
        }

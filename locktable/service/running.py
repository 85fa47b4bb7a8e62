"""A lock node and its service, from its start until it has handed over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...database import Store
from ...web.serving import GRACE_S, Certificate, Server, address_of
from ...web.stopping import Stopping
from ..limits import Limits
from ..node import NodePort, Terms, open_node
from .application import LockService
from .grants import Permit
from .post import HttpPost


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Which node this is. `advertise` is the URL by which the other nodes reach it, if it is not where it listens."""

    node: str
    cluster: str
    advertise: str | None = None
    terms: Terms = field(default_factory=Terms)
    limits: Limits = field(default_factory=Limits)
    tokens: Mapping[str, Permit] = field(default_factory=dict, repr=False)
    peer_token: str | None = field(default=None, repr=False)
    peer_ca_file: str | None = None
    certificate: Certificate | None = None
    grace_s: int = GRACE_S


class LockServer(Server):
    """A server that lets its node hand over while the other nodes still reach it, and stops then."""

    def __init__(self, service: LockService, *, certificate: Certificate | None = None, grace_s: int = GRACE_S) -> None:
        super().__init__(service.application(), service.stopping, certificate=certificate, grace_s=grace_s)
        self._service = service
        self._handing_over: asyncio.Task[None] | None = None

    def _stop(self) -> None:
        """Hand over first. The second time, do not wait for that."""
        if self._handing_over is None:
            self._service.stopping.set()
            self._handing_over = asyncio.ensure_future(self._hand_over())
        else:
            super()._stop()

    async def _hand_over(self) -> None:
        try:
            await self._service.end_waits()
            await self._service.node.stop()
        finally:
            super()._stop()


async def serve(
    store: Store, sock: socket.socket, settings: NodeSettings, announce: Callable[[LockServer, str], None]
) -> None:
    """Run a node and its service until it is told to stop. The store is the caller's, open, and stays so.

    `announce` is called with the server and its URL when the first request may come.
    """
    url = address_of(sock, tls=settings.certificate is not None)
    post = HttpPost(token=settings.peer_token, tls_ca_file=settings.peer_ca_file)
    node = open_node(
        settings.node,
        settings.cluster,
        settings.advertise or url,
        store,
        post,
        terms=settings.terms,
        limits=settings.limits,
    )
    service = LockService(node, stopping=Stopping(), tokens=settings.tokens)
    server = LockServer(service, certificate=settings.certificate, grace_s=settings.grace_s)
    try:
        await node.start()
        await server.run_on(sock, lambda: announce(server, url))
    finally:
        await service.end_waits()
        await node.stop()
        assert isinstance(node.port, NodePort)
        await node.port.close()
        await post.close()

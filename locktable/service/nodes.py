"""What is asked of one node: what it holds, how it sees the cluster, and what the other nodes have to say."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from ...web.answers import answer
from ...web.endpoint import Endpoint
from ...web.reading import Intake
from ...web.stopping import Stopping, while_wanted
from ..lock import Lock
from ..node import Answer, Message, Node, NodeLeaving, Peer, Status
from ..node.messages import Acquire, Forget, Item, Listed, ListNode, Refusal
from ..wire import NODE_LOCKS, PEER, STATUS, LockList
from .clients import check, listed, permit_of
from .problems import forbidden, invalid_body, no_such_node
from .waits import Waits

MOST_BYTES = 64 << 20  # what a node may tell of all that its clients hold


class Nodes:
    """The endpoints of `/api/node`, `/api/status` and `/api/peer`."""

    def __init__(self, node: Node, stopping: Stopping, waits: Waits) -> None:
        self._node, self._stopping, self._waits, self._intake = node, stopping, waits, Intake(MOST_BYTES)
        self._messages: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        named = ("name", "id")
        return [
            Endpoint("GET", NODE_LOCKS, self.locks, "What a node holds and granted.", answers={200: LockList}),
            Endpoint("DELETE", NODE_LOCKS, self.forget, "Have a node forget a lock.", answers={204: None}, query=named),
            Endpoint("GET", STATUS, self.status, "The cluster as this node sees it.", answers={200: Status}),
            Endpoint("POST", PEER, self.said, "What the nodes say to one another.", Message, {200: Answer}),
        ]

    async def locks(self, http: HttpRequest) -> Response:
        """List what a node's clients hold, then what it granted."""
        peer = self._named(http)
        found = await self._node.node_locks() if peer is None else await self._locks_of(peer)
        return listed(found, permit_of(http), self._node.port.now())

    async def forget(self, http: HttpRequest) -> Response:
        """Have a node forget a lock, whether or not it knows of it."""
        name, lock_id = http.query_params.get("name", ""), http.query_params.get("id", "")
        check(permit_of(http), name)
        if not lock_id:
            raise invalid_body("to forget a lock needs its id")
        peer = self._named(http)
        if peer is None:
            await self._node.forget(name, lock_id)
        else:
            await self._ask(peer, Forget(items=(Item(name, lock_id),)))
        return Response(status_code=204)

    async def status(self, http: HttpRequest) -> Response:
        """Tell how this node sees the cluster."""
        return answer(await self._node.status())

    async def said(self, http: HttpRequest) -> Response:
        """Answer another node. A request of one that has left keeps its place for a moment: its client asks elsewhere."""
        if not permit_of(http).is_peer:
            raise forbidden("This is for the other nodes of the cluster, which have a token of their own.")
        message = self._read(await self._intake.body(http))
        if not isinstance(message, Acquire) or message.request.wait_s <= 0:
            return answer(await self._node.answer(message))
        if self._stopping:
            return answer(Refusal.of(NodeLeaving(), self._node.port.now()))
        work = self._waits.outcome(self._node.answer(message), keep=bool(message.request.request))
        said = await while_wanted(http, self._stopping, work)
        return answer(said or Refusal.of(NodeLeaving(), self._node.port.now()))

    def _read(self, body: bytes) -> Message:
        try:
            return self._messages.decode(body)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise invalid_body(str(error)) from error

    def _named(self, http: HttpRequest) -> Peer | None:
        """Return the node that a path names; None: this one."""
        name = http.path_params["node"]
        if name == self._node.me.node:
            return None
        found = [peer for peer in self._node.members.peers if peer.node == name]
        if not found:
            raise no_such_node(quote(name))
        return found[-1]

    async def _locks_of(self, peer: Peer) -> list[Lock]:
        said = await self._ask(peer, ListNode())
        now = self._node.port.now()
        return [told.here(now) for told in said.locks] if isinstance(said, Listed) else []

    async def _ask(self, peer: Peer, message: Message) -> Answer:
        said = await self._node.port.ask(peer.address, message, self._node.terms.ask_s)
        if isinstance(said, Refusal):
            raise said.raised(self._node.port.now())
        return said

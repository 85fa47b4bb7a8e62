"""How a node's messages get to the other nodes: over HTTP, to the addresses that they have noted in the database."""

from __future__ import annotations

import asyncio

import msgspec

from ...web.address import Address
from ...web.caller import Answer as HttpAnswer
from ...web.failures import AnswerLost, CallError, NotSent
from ...web.peers import PeerCaller
from ..node import Answer, Message, Unreachable
from ..wire import PEER


class HttpPost:
    """Carries messages. `token` is what the nodes know one another by, `tls_ca_file` has the certificates to trust."""

    def __init__(self, *, token: str | None = None, tls_ca_file: str | None = None) -> None:
        self._token, self._tls_ca_file = token, tls_ca_file
        self._callers: dict[str, asyncio.Task[PeerCaller]] = {}
        self._answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

    async def __call__(self, address: str, message: Message, timeout_s: float) -> Answer:
        """See Port.ask."""
        body = msgspec.json.encode(message)
        try:
            async with asyncio.timeout(timeout_s):
                caller = await self._caller(address)
                return self._read(address, await caller.post(PEER, body))
        except CallError as error:
            why = error.__cause__ if isinstance(error, NotSent | AnswerLost) else None
            raise Unreachable(address, str(why or error)) from error
        except TimeoutError as error:
            raise Unreachable(address, f"nothing came in {timeout_s:g} s") from error

    async def close(self) -> None:
        """Give up the connections."""
        callers = await asyncio.gather(*self._callers.values(), return_exceptions=True)
        self._callers.clear()
        for caller in callers:
            if isinstance(caller, PeerCaller):
                await caller.close()

    async def _caller(self, address: str) -> PeerCaller:
        """Return the connections to an address. Who comes first opens them, and need not stay until they are."""
        opening = self._callers.get(address)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._callers[address] = asyncio.ensure_future(self._opened(address))
        return opening.result() if opening.done() else await asyncio.shield(opening)

    async def _opened(self, address: str) -> PeerCaller:
        caller = PeerCaller(Address.parse(address), token=self._token, tls_ca_file=self._tls_ca_file)
        await caller.open()
        return caller

    def _read(self, address: str, said: HttpAnswer) -> Answer:
        if said.status != 200:
            raise Unreachable(address, f"it answered {said.status}")
        try:
            return self._answers.decode(said.body)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Unreachable(address, "it is no lock node, or one of another version") from error

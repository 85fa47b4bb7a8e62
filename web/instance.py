"""Which process answers. What an `Idempotency-Key` stands for is remembered by one process only: the next one, after a restart,
would carry a repeat out again. So each answer names its process, and a request may say for which one it is.
"""

from __future__ import annotations

from secrets import token_hex

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .answers import refusal
from .instances import ANOTHER, FOR, INSTANCE
from .problem import Problem

WANTED = FOR.encode()
CHANGED = "This is not the process that was asked for: the service was started anew. Nothing was changed."


class Instance:
    """In front of an application: names it, and refuses what is for another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._name = app, token_hex(8).encode()
        self._header = INSTANCE.encode(), self._name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""

        async def naming(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), self._header]
            await send(message)

        wanted = dict(scope["headers"]).get(WANTED) if scope["type"] == "http" else None
        if wanted is not None and wanted != self._name:
            await refusal(Problem(412, ANOTHER, CHANGED))(scope, receive, naming)
            return
        await self._app(scope, receive, naming)

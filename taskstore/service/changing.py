"""The requests that change something. Each may carry an `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response

from ...web.answers import answer
from ...web.application import responded
from ...web.endpoint import Endpoint
from ...web.reading import Gone, Intake
from ...web.repeats import Repeats
from ...web.stopping import Stopping, while_wanted
from ..store import AsyncTaskStore
from ..task import Task
from ..wire import Answer, ClaimRequest, ReleaseRequest, RenewRequest, UpdateRequest, decoded, owner_of
from .failures import answered_error
from .limits import Limits

ANSWERS = {200: Answer, 409: Answer, 422: Answer}
CarryOut = Callable[[Request, bytes], Awaitable[Response]]


class Changing:
    """What can be done to a store."""

    def __init__(self, store: AsyncTaskStore, limits: Limits, stopping: Stopping) -> None:
        self._store, self._limits, self._stopping = store, limits, stopping
        self._intake, self._repeats = Intake(limits.most_bytes), Repeats()
        self.waiting = 0

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        return [
            self._endpoint("/update", self.update, "Add, change and delete tasks, all or nothing.", UpdateRequest),
            self._endpoint("/claim", self.claim, "Own one available task for a while.", ClaimRequest),
            self._endpoint("/renew", self.renew, "Own a task for longer.", RenewRequest),
            self._endpoint("/release", self.release, "Give a task back.", ReleaseRequest),
            Endpoint("POST", "/snapshot", self.snapshot, "Let the journal begin anew.", answers={204: None}),
            Endpoint("POST", "/flush", self.flush, "Wait until all is durable.", answers={204: None}),
        ]

    async def update(self, request: Request, body: bytes) -> Response:
        """Add, change and delete."""
        asked = decoded(body, UpdateRequest)
        self._limits.check_update(asked)
        adds, changes = asked.values()
        owner, deletes, depends = owner_of(asked.clientid), asked.deletes or (), asked.depends or ()
        return _new(await self._store.update(owner, adds=adds, changes=changes, deletes=deletes, depends=depends))

    async def claim(self, request: Request, body: bytes) -> Response:
        """Claim. What was claimed for a client that has left is given back, unharmed."""
        asked = decoded(body, ClaimRequest)
        self._limits.check_claim(asked)
        task = await self._claimed(request, asked)
        if task is None:
            return answer(Answer())
        if await request.is_disconnected():
            await self._store.release(task.owner, task)
            raise Gone
        return _new([task])

    async def renew(self, request: Request, body: bytes) -> Response:
        """Own for longer."""
        asked = decoded(body, RenewRequest)
        return _new([await self._store.renew(owner_of(asked.clientid), asked.id, asked.for_s())])

    async def release(self, request: Request, body: bytes) -> Response:
        """Give back."""
        asked = decoded(body, ReleaseRequest)
        owner, after_s = owner_of(asked.clientid), asked.after_s()
        return _new([await self._store.release(owner, asked.id, after_s=after_s, error=asked.error)])

    async def snapshot(self, request: Request) -> Response:
        """Take a snapshot."""
        await self._store.snapshot()
        return Response(status_code=204)

    async def flush(self, request: Request) -> Response:
        """Write everything down."""
        await self._store.flush()
        return Response(status_code=204)

    async def _claimed(self, request: Request, asked: ClaimRequest) -> Task | None:
        wait_s = 0.0 if self._stopping else asked.wait_s()
        owner, groups, depends = owner_of(asked.clientid), asked.all_groups(), asked.depends or ()
        work = self._store.claim(owner, groups, asked.for_s(), depends=depends, wait_s=wait_s)
        if not wait_s:
            return await work
        self.waiting += 1
        try:
            return await while_wanted(request, self._stopping, work)
        finally:
            self.waiting -= 1

    def _endpoint(self, path: str, carry_out: CarryOut, summary: str, takes: type) -> Endpoint:
        async def handle(request: Request) -> Response:
            body = await self._intake.body(request)
            return await self._repeats.once(
                request, path, body, lambda: responded(carry_out(request, body), answered_error)
            )

        return Endpoint("POST", path, handle, summary, takes, ANSWERS)


def _new(tasks: Iterable[Task]) -> Response:
    return answer(Answer.of(tasks))

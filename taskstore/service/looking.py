"""The requests that only look."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from ...web.answers import LINES, answer, lines, listed
from ...web.endpoint import Endpoint
from ...web.problem import Problem
from ..stats import Stats
from ..store import AsyncTaskStore
from ..task import Task
from ..wire import TaskDocument
from .limits import Limits

LONGEST_ID = 40  # digits
SAID = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


class Looking:
    """What there is to see of a store."""

    def __init__(self, store: AsyncTaskStore, limits: Limits) -> None:
        self._store, self._limits = store, limits

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints."""
        one, several = {200: TaskDocument}, {200: list[TaskDocument]}
        return [
            Endpoint(
                "GET", "/groups", self.groups, "The names of the groups that have tasks.", answers={200: list[str]}
            ),
            Endpoint("GET", "/task/{id}", self.task, "A task.", answers=one),
            Endpoint(
                "GET",
                "/tasks/{ids}",
                self.some,
                "Tasks by id, in the order asked for; null for an absent one.",
                answers={200: list[TaskDocument | None]},
            ),
            Endpoint("GET", "/tasks", self.every, "All tasks, one a line.", answers=one, media_type=LINES),
            Endpoint(
                "GET",
                "/group/{name:rest}",
                self.group,
                "A group's tasks, the oldest first.",
                answers=several,
                query=("limit", "owned"),
            ),
            Endpoint("GET", "/stats", self.stats, "How the store is doing.", answers={200: Stats}),
        ]

    async def groups(self, request: Request) -> Response:
        """Answer with the names of groups."""
        return answer(await self._store.groups())

    async def task(self, request: Request) -> Response:
        """Answer with a task."""
        task_id = _id(request.path_params["id"])
        if (task := await self._store.task(task_id)) is None:
            raise Problem(404, "no-such-task", f"There is no task {task_id}, or not any more.")
        return answer(TaskDocument.of(task))

    async def some(self, request: Request) -> Response:
        """Answer with tasks by id."""
        spelled = request.path_params["ids"].split(",")
        if len(spelled) > self._limits.most_named:
            raise _bad(f"A look is at {self._limits.most_named} tasks at most here, not {len(spelled)}.")
        return listed(await self._store.tasks(map(_id, spelled)), _document)

    async def every(self, request: Request) -> Response:
        """Answer with all tasks."""
        return lines(await self._store.every_task(), TaskDocument.of)

    async def group(self, request: Request) -> Response:
        """Answer with a group's tasks."""
        limit, owned = _limit(request.query_params.get("limit")), _owned(request.query_params.get("owned"))
        return listed(await self._store.group(_group(request), limit, owned=owned), TaskDocument.of)

    async def stats(self, request: Request) -> Response:
        """Answer with numbers."""
        return answer(await self._store.stats())


def _document(task: Task | None) -> TaskDocument | None:
    return TaskDocument.of(task) if task is not None else None


def _group(request: Request) -> str:
    """Return the group that the path names: it is UTF-8, or it would be another one."""
    try:
        unquote_to_bytes(request.scope["raw_path"]).decode()
    except UnicodeDecodeError as error:
        raise _bad("The name of a group is percent-encoded UTF-8.") from error
    return str(request.path_params["name"])


def _id(text: str) -> int:
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > LONGEST_ID:
        raise _bad(f"A task's id is a number, not {text!r:.40}.")
    return int(text)


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > LONGEST_ID:
        raise _bad(f"A limit is a number from 0 (none) up, not {text!r:.40}.")
    return int(text)


def _owned(text: str | None) -> bool:
    if text is None:
        return False
    if (said := SAID.get(text.lower())) is None:
        raise _bad(f"owned is one of {', '.join(SAID)}, not {text!r:.40}.")
    return said


def _bad(text: str) -> Problem:
    return Problem(422, "bad-parameter", text)

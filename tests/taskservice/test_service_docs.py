"""docs/taskstore.md, "Over HTTP": it names every request, every problem and every number, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from loopservice import on_loop

from slotkeeper.taskstore.wire import PROBLEMS, ClaimRequest, ReleaseRequest, RenewRequest, TaskDocument
from slotkeeper.web.instances import FOR, INSTANCE

PAGE = Path(__file__).parents[2].joinpath("docs/taskstore.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Over HTTP\n")[1].split("\n## ")[0]


async def test_the_page_has_every_request() -> None:
    async with on_loop() as service:
        paths = (await service.http.get("/openapi.json")).json()["paths"]

    named = set(
        re.findall(r"/[a-z]+(?:\.json)?", " ".join(re.findall(r"^\| `(?:GET|POST) .*?\|", SECTION, re.MULTILINE)))
    )
    assert named == {re.sub(r"/{.*", "", path) for path in paths} | {"/openapi.json"}


def test_the_page_has_every_problem_that_a_client_may_meet() -> None:
    assert {name for name in PROBLEMS if f"`{name}`" not in SECTION} == set()


def test_the_page_has_the_fields() -> None:
    for kind in (TaskDocument, ClaimRequest, RenewRequest, ReleaseRequest):
        assert {name for name in kind.__struct_fields__ if f"`{name}`" not in SECTION} == set()
    assert {name for name in (INSTANCE, FOR) if f"`{name}`" not in SECTION} == set()


async def test_the_page_has_every_number() -> None:
    async with on_loop() as service:
        await service.http.get("/groups")
        text = (await service.http.get("/metrics")).text

    kinds = {name for name in re.findall(r"^# TYPE (\w+)", text, re.MULTILINE) if not name.endswith("_created")}
    assert set(re.findall(r"`(slotkeeper_tasks_\w+)`", SECTION)) == kinds

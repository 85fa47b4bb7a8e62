"""docs/locktable.md, of the service and its client: every request, problem, field and number is named, and the example runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from locknodes import RunningNode

from slotkeeper.locktable.service import problems
from slotkeeper.locktable.service.grants import read_permits
from slotkeeper.locktable.wire import PROBLEMS, UNREACHABLE, AcquireDocument, LockDocument, RenewDocument

PAGE = Path(__file__).parents[2].joinpath("docs/locktable.md").read_text(encoding="utf-8")
SERVICE = PAGE.split("\n## The service\n")[1].split("\n## ")[0]
CLIENT = PAGE.split("\n## The client over HTTP\n")[1].split("\n## ")[0]
Ask = Callable[..., httpx2.Response]


def test_the_page_has_every_request(ask: Ask) -> None:
    paths = ask("GET", "/openapi.json").json()["paths"]

    rows = " ".join(re.findall(r"^\| `(?:GET|POST|PUT|DELETE) .*?\|", SERVICE, re.MULTILINE))
    named = {path.replace("NODE", "{node}") for path in re.findall(r"/[\w/]+(?:\.json)?", rows)}
    assert named == {*paths, "/openapi.json"}
    for path in (path for path in paths if path.startswith("/api/")):
        for method in paths[path]:
            assert f"`{method.upper()} {path.replace('{node}', 'NODE')}" in SERVICE


def test_the_page_has_every_problem() -> None:
    names = {name for name, _, _ in PROBLEMS.values()} | {UNREACHABLE, problems.forbidden("").name}
    assert {name for name in names if f"`{name}`" not in SERVICE} == set()


def test_the_page_has_every_field() -> None:
    for kind in (LockDocument, AcquireDocument, RenewDocument):
        assert {name for name in kind.__struct_fields__ if f"`{name}`" not in SERVICE} == set()


def test_the_page_has_every_number(ask: Ask) -> None:
    ask("GET", "/api/status")
    text = ask("GET", "/metrics").text

    kinds = {name for name in re.findall(r"^# TYPE (\w+)", text, re.MULTILINE) if not name.endswith("_created")}
    assert set(re.findall(r"`(slotkeeper_locks_\w+)`", SERVICE)) == kinds


def test_the_documented_tokens_are_read(tmp_path: Path) -> None:
    tmp_path.joinpath("tokens.json").write_text(SERVICE.split("```json\n")[1].split("```")[0])
    tmp_path.joinpath("admin.token").write_text("another line of 16 characters".replace(" ", "-"))

    permits = read_permits(tmp_path / "tokens.json")

    assert [permit.name for permit in permits.values()] == ["ci", "admin"]


def test_the_documented_client_runs(node: RunningNode, capsys: pytest.CaptureFixture[str]) -> None:
    example = CLIENT.split("```python\n")[1].split("```")[0]

    exec(compile(example.replace("http://127.0.0.1:8049", node.url), "docs/locktable.md", "exec"), {})

    assert int(capsys.readouterr().out) > 1 << 32

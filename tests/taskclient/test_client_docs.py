"""docs/taskstore.md and docs/cli.md: the client's examples run, and the documents have the fields that are named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from servedtasks import served

from slotkeeper.cli.main import slotkeeper
from slotkeeper.taskstore.remote import TaskClient

DOCS = Path(__file__).parents[2] / "docs"
CLIENT = (DOCS / "taskstore.md").read_text(encoding="utf-8").split("\n## The client\n")[1].split("\n## ")[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", CLIENT, re.DOTALL)
COMMANDS = (DOCS / "cli.md").read_text(encoding="utf-8").split("\n## slotkeeper tasks\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("example", EXAMPLES, ids=["threads", "asyncio"])
def test_the_examples_run(example: str) -> None:
    with served() as service, TaskClient(service.url) as client:
        exec(compile(example.replace("http://127.0.0.1:8048", service.url), "docs/taskstore.md", "exec"), {})

        assert [task.data for task in client.every_task()] == [b"to: you"]
        assert client.groups() == ["sent"]


BEFORE = ("add g x", "claim g --for 60 --owner me")


@pytest.mark.parametrize("command", [*BEFORE, "list g", "show 1", "groups", "stats", "done 2 --owner me"])
def test_the_documents_have_the_fields_that_the_page_names(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SLOTKEEPER_")]:
        monkeypatch.delenv(name)
    rows = re.findall(r"^\|( `.*?)\|(.*)\|$", COMMANDS, re.MULTILINE)
    (fields,) = (re.sub(r"\(.*?\)|:.*", "", row[1]) for row in rows if f"`{command.split()[0]}`" in row[0])

    with served() as service:
        for each in (*BEFORE, command):
            told = CliRunner().invoke(slotkeeper, ["tasks", *each.split(), "--url", service.url, "--json"])
            if each == command:
                break

    assert set(json.loads(told.stdout)) == set(re.findall(r"`(\w+)`", fields))

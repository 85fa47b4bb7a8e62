"""What docs/taskstore.md shows of workers runs, and does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventually import until

from slotkeeper.taskstore import Add, TaskStore, Worker

PAGE = Path(__file__).parents[2].joinpath("docs/taskstore.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.split("\n## Workers\n")[1].split("```python\n")[1].split("```")[0]


def test_the_worker_of_the_page_sends_mail_and_sets_the_rest_aside() -> None:
    names: dict[str, Any] = {}
    exec(compile(EXAMPLE, "docs/taskstore.md", "exec"), names)
    with TaskStore() as store:
        store.update("me", adds=[Add("mail", b"to: you@there"), Add("mail", b"to: nobody")])
        with Worker(store, "mail", names["send"], wait_s=0.05) as worker:
            until(lambda: worker.done + worker.failed == 2)
        left = {task.group: (task.data, task.error) for task in store.every_task()}
    assert left == {"sent": (b"to: you@there", ""), "mail/quarantine": (b"to: nobody", "no address")}

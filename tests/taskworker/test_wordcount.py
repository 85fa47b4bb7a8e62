"""The MapReduce of examples/wordcount.py: over HTTP, with processes for workers, its output to the letter."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from slotkeeper.taskstore import Add, HeldTask, TaskStore, Worker

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount.py"
BOUND_S = 120
SHOWN = """\
0008 the
0008 a
0006 of
0004 to
0004 their
0004 is
0004 in
0003 word
0003 mappers
0003 key
"""


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """The example's names, without running it."""
    return runpy.run_path(str(EXAMPLE))


def test_it_prints_the_ten_most_frequent_words() -> None:
    ran = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=BOUND_S)
    assert (ran.stdout, ran.stderr, ran.returncode) == (SHOWN, "", 0)


def test_each_line_becomes_a_task_for_each_of_its_words(example: dict[str, Any]) -> None:
    lines = example["TEXT"].splitlines()
    with TaskStore() as store:
        store.update("me", adds=[Add("map", line.encode()) for line in lines])
        handle, left = example["mapped"], iter(range(len(lines) - 1, -1, -1))

        def mapped(task: HeldTask) -> Any:
            if next(left) == 0:
                made.stop()
            return handle(task)

        made = Worker(store, "map", mapped, wait_s=0.05)
        made.run()
        tasks = store.every_task()
    words: Counter[str] = Counter()
    for task in tasks:
        words[task.group.removeprefix("reduceword ")] += int(task.data)
    assert (len(lines), len(tasks), len(words), words.total()) == (12, 128, 80, 134)

"""Count words the MapReduce way: processes that share nothing but the groups of a task store, over HTTP.

    python examples/wordcount.py                         # serves a store in memory itself
    python examples/wordcount.py http://127.0.0.1:8048   # uses one that is served, and has no such groups yet

Each line of the text is a task of the group `map`. Three mappers turn one into a task for each of its words, in the group
`reduceword WORD`; three reducers turn such a group into one task of the group `output`. What a worker adds comes with the
deletion of what it read, so a worker may die at any moment and no word is lost or counted twice.
"""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from slotkeeper.taskstore import Add, HeldTask, Outcome, Worker
from slotkeeper.taskstore.remote import TaskClient

TEXT = """\
MapReduce is a way to spread a large computation over many machines.
The lines of the input are tasks in a group of their own.
Mappers claim these tasks, split each line, and count every word of it.
For every key the mappers add a task to a group with that name.
The deletion of their task comes in the same step, so nothing is lost.
A crash of one worker leaves its line to the others.
Shuffling is free, as a name holds all counts of one key.
Reducers wait until the mappers are done and the computation goes on.
Their work is a sum, in which each word and key appears once.
Results are sorted in descending order.
These numbers tell how often their word appears.
Nothing more belongs to this computation.
"""
MAP, REDUCE, OUTPUT, WORD = "map", "reduce", "output", "reduceword "
WORKERS, SHOWN = 3, 10
MAP_S, REDUCE_S, WAIT_S, LOOK_S = 10.0, 30.0, 0.5, 0.05


def mapped(task: HeldTask) -> Outcome:
    """Turn a line into a task for each of its words."""
    words = [word.lower().removesuffix(".").removesuffix(",") for word in task.data.decode().split(" ")]
    return Outcome(adds=[Add(WORD + word, str(times).encode()) for word, times in Counter(words).items()])


def reduced(store: TaskClient, task: HeldTask) -> Outcome:
    """Turn all tasks of a word into one that says how often it was seen."""
    group = task.data.decode()
    seen = store.group(group, owned=True)
    total = sum(int(each.data) for each in seen)
    line = f"{total:04d} {group.removeprefix(WORD)}"
    return Outcome(adds=[Add(OUTPUT, line.encode())], deletes=[each.id for each in seen])


def work(url: str, group: str) -> None:
    """Be a mapper or a reducer, until the process is told to end."""
    with TaskClient(url) as store:
        handle = mapped if group == MAP else partial(reduced, store)
        worker = Worker(store, group, handle, for_s=MAP_S if group == MAP else REDUCE_S, wait_s=WAIT_S)
        for told in (signal.SIGTERM, signal.SIGINT):
            signal.signal(told, lambda *_: worker.stop())
        worker.run()


def count(store: TaskClient, lines: list[str]) -> list[str]:
    """Let the workers count the words of some lines. Return how often each was seen, the most frequent first."""
    store.update("main", adds=[Add(MAP, line.encode()) for line in lines])
    _wait_until_empty(store, MAP)
    words = [group for group in store.groups() if group.startswith(WORD)]
    store.update("main", adds=[Add(REDUCE, group.encode()) for group in words])
    _wait_until_empty(store, REDUCE)
    return sorted((task.data.decode() for task in store.group(OUTPUT)), reverse=True)


def _wait_until_empty(store: TaskClient, group: str) -> None:
    while store.group(group, 1, owned=True):
        time.sleep(LOOK_S)


@contextmanager
def served() -> Iterator[str]:
    """Serve a store in memory, and return its address."""
    command = [sys.executable, "-m", "slotkeeper", "--quiet", "tasks", "serve", "--journal", "memory", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise SystemExit("the service did not start")
            yield url
        finally:
            process.terminate()


@contextmanager
def workers(url: str) -> Iterator[None]:
    """Let mappers and reducers work meanwhile, each in a process of its own."""
    spawning = multiprocessing.get_context("spawn")
    crew = [spawning.Process(target=work, args=(url, group)) for group in (MAP, REDUCE) for _ in range(WORKERS)]
    for process in crew:
        process.start()
    try:
        yield
    finally:
        for process in crew:
            process.terminate()
        for process in crew:
            process.join()


def run(url: str) -> None:
    """Count the words of the text, and print the most frequent ones."""
    with TaskClient(url) as store, workers(url):
        for line in count(store, TEXT.splitlines())[:SHOWN]:
            print(line)


def main() -> None:
    """Use the store that is named, or serve one."""
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        with served() as url:
            run(url)


if __name__ == "__main__":
    main()

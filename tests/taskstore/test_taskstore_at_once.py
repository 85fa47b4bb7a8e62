"""A store that keeps nothing answers without a journal to think of, and answers as the others do."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest
from eitherface import FACES
from taskstores import Hands, opened

from slotkeeper.taskstore import Add, Change, Interrupted, MemoryJournal, Task, TaskStore, UpdateError

GROUPS = ["a", "b", "c"]
OWNERS = ["x", "y"]


def asked(lots: random.Random, ids: list[int]) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Draw something to ask for."""
    owner, task_id = lots.choice(OWNERS), lots.choice(ids)
    some = lots.sample(ids, min(2, len(ids)))
    questions: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("claim", (owner, lots.choice([lots.choice(GROUPS), GROUPS, []]), 5), {"depends": lots.choice([(), some])}),
        ("update", (owner,), {"deletes": [task_id]}),
        ("update", (owner,), {"deletes": [task_id], "adds": [Add(lots.choice(GROUPS), b"1", after_s=3)]}),
        ("update", (owner,), {"changes": [Change(task_id, b"2")], "depends": some}),
        ("update", (owner,), {"adds": [Add("a", key=lots.choice("kl")), Add("b")]}),
        ("update", (lots.choice([owner, 7]),), {"deletes": lots.choice([(), [task_id], some])}),
        ("renew", (owner, task_id, 5), {}),
        ("release", (owner, task_id), {"after_s": 2, "error": lots.choice([None, "no"])}),
        ("tasks", (some,), {}),
        ("group", ("a",), {"owned": True}),
        ("groups", (), {}),
        ("every_task", (), {}),
        ("stats", (), {}),
    ]
    return lots.choice(questions)


def answer(store: Any, method: str, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return what a store answers, or why it refuses."""
    try:
        return getattr(store, method)(*values, **named)
    except UpdateError as error:
        return str(error)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("seed", range(5))
def test_a_store_with_and_one_without_a_journal_give_the_same_answers(face: str, seed: int) -> None:
    lots, hands = random.Random(seed), Hands()
    options: dict[str, Any] = {"most_attempts": 3}
    with (
        opened(face, MemoryJournal(), clock=hands.clock(), dice=random.Random(seed).random, **options) as one,
        opened(
            face, MemoryJournal(keep=True), clock=hands.clock(), dice=random.Random(seed).random, **options
        ) as other,
    ):
        for _ in range(600):
            ids = [task.id for task in one.every_task()] or [1]
            question = asked(lots, [*ids, 999_999] if lots.random() < 0.1 else ids)
            assert answer(one, *question) == answer(other, *question)
            hands.go_on(lots.random())


def test_threads_that_share_a_store_without_a_journal_claim_each_task_once() -> None:
    with TaskStore() as store:
        store.update("me", adds=[Add("g") for _ in range(2_000)])
        claimed: list[list[Task]] = [[] for _ in range(8)]

        def work(number: int) -> None:
            while (task := store.claim(f"w{number}", "g", 1000)) is not None:
                claimed[number].append(task)
                store.update(f"w{number}", deletes=[task.id], adds=[Add("done")])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ids = Counter(task.id for each in claimed for task in each)
        assert (len(ids), max(ids.values())) == (2_000, 1)
        assert len(store.group("done")) == 2_000
        assert store.groups() == ["done"]


def test_an_interrupted_change_of_a_store_without_a_journal_ends_it() -> None:
    def dice() -> float:
        raise KeyboardInterrupt

    with TaskStore(dice=dice) as store:
        store.update("me", adds=[Add("g")])
        with pytest.raises(KeyboardInterrupt):
            store.claim("me", "g", 1)
        with pytest.raises(Interrupted):
            store.groups()

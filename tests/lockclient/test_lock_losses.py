"""Answers that are lost between a client and a real node: each request still counts once."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from itertools import pairwise

import pytest
from eventually import until
from locknodes import RunningNode, client_of
from lossyproxy import LossyProxy

from slotkeeper.locktable import LockHeld, LockUnknown
from slotkeeper.locktable.remote import LockClient


def test_a_grant_whose_answer_is_lost_is_found_again(proxy: LossyProxy, node: RunningNode, name: str) -> None:
    with LockClient(proxy.url) as client:
        proxy.lose_answers = 1
        lock = client.acquire(name)
        (held,) = [each for each in client.locks() if each.name == name]
        assert (held.id, proxy.lost) == (lock.id, 1)
        proxy.lose_answers = 1
        assert client.release(lock)
        proxy.lose_requests = 1
        assert client.release(client.acquire(name))


def test_a_renewal_whose_answer_is_lost_is_made_again(proxy: LossyProxy, name: str) -> None:
    with LockClient(proxy.url) as client:
        lock = client.acquire(name, lease_s=5)
        proxy.lose_answers = 1
        renewed = client.renew(lock, 60)

    assert renewed.until - lock.until > 50


def test_a_place_in_line_outlives_a_lost_connection(proxy: LossyProxy, node: RunningNode, name: str) -> None:
    got: list[str] = []
    with LockClient(proxy.url) as client, client_of(node) as direct:
        first = direct.acquire(name)
        proxy.lose_answers = 1  # the one to the wait
        waiter = threading.Thread(target=lambda: got.append(client.acquire(name, holder="waiter", wait_s=30).holder))
        waiter.start()
        until(lambda: node.node.speaking.table.waiting)
        direct.release(first)  # its answer is lost
        waiter.join()
        with pytest.raises(LockHeld) as caught:
            direct.acquire(name)

    assert got == ["waiter"]
    assert (caught.value.lock.holder, proxy.lost) == ("waiter", 1)


def test_nobody_is_inside_with_another_while_one_of_three_answers_is_lost(
    proxy: LossyProxy, node: RunningNode, name: str
) -> None:
    inside: list[tuple[float, float, int]] = []
    proxy.lose_each = 3

    def work(seed: int) -> None:
        dice = random.Random(seed)
        with LockClient(proxy.url, timeout_s=10) as client:
            for _ in range(6):
                with suppress(LockUnknown):
                    lock = client.acquire(name, lease_s=20, wait_s=30)
                    began = time.monotonic()
                    while time.monotonic() < began + dice.random() * 0.01:
                        pass
                    inside.append((began, time.monotonic(), lock.fence))
                    client.release(lock)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert proxy.lost > 5
    assert len(inside) >= 12
    inside.sort()
    for before, after in pairwise(inside):
        assert before[1] <= after[0]
        assert before[2] < after[2]
    with client_of(node) as client:
        assert name not in {lock.name for lock in client.locks()}

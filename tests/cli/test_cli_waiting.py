"""`slotkeeper semaphore`: standing in line, leases."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from commandline import PATIENCE_S, Ran, Run

ANN, BOB, EVE = "3:ann:run-1:1", "3:bob:run-1:2", "3:eve:run-1:3"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def semaphore(run: Run, embedded: str) -> Run:
    """`slotkeeper semaphore` on one store, which has `gpu` with one slot, held by Ann."""

    def command(*args: str) -> Ran:
        return run("semaphore", *args, "--database", embedded)

    assert command("create", "gpu", "--size", "1").code == 0
    assert command("acquire", "gpu", "--owner", ANN).code == 0
    return command


@pytest.fixture
def waiting(semaphore: Run, started: Start, embedded: str) -> subprocess.Popen[str]:
    """Eve waits for the slot, in a process of her own."""
    args = ("semaphore", "acquire", "gpu", "--owner", EVE, "--wait", "60", "--json", "--database", embedded)
    process = started(*args)
    until(lambda: semaphore("waiters", "gpu", "--json").json["waiters"])
    return process


def until(look: Callable[[], Any]) -> Any:
    """Look until there is something to see."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError("nothing came")


def ended(process: subprocess.Popen[str]) -> Ran:
    with process:
        out, err = process.communicate(timeout=PATIENCE_S)
    return Ran(process.returncode, out, err)


def test_a_wait_that_ends_without_a_slot_is_not_acquired_and_leaves_nobody_in_line(semaphore: Run) -> None:
    ran = semaphore("acquire", "gpu", "--owner", EVE, "--wait", "0.2")

    assert (ran.code, ran.err) == (3, "slotkeeper: no slot became free in 0.2 s: 1 of 1 held\n")
    assert semaphore("waiters", "gpu", "--json").json == {"semaphore": "gpu", "waiting": 0, "waiters": []}


def test_a_waiter_is_shown_and_gets_in_when_the_slot_is_released(
    semaphore: Run, waiting: subprocess.Popen[str]
) -> None:
    (shown,) = semaphore("waiters", "gpu", "--json").json["waiters"]
    table = semaphore("waiters", "gpu").out
    released = semaphore("release", "gpu", "--owner", ANN)
    got_in = ended(waiting)

    assert set(shown) == {
        *("owner", "workflow_id", "run_id", "hold_id", "ticket", "position", "since_ms", "bucket", "client"),
    }
    assert (shown["owner"], shown["position"]) == (EVE, 1)
    assert "1 waiting" in table
    assert "eve" in table
    assert (released.code, got_in.code) == (0, 0)
    assert got_in.json["owner"] == EVE
    assert semaphore("holders", "gpu", "--json").json["holders"][0]["owner"] == EVE


def test_a_cancelled_waiter_is_told_so(semaphore: Run, waiting: subprocess.Popen[str]) -> None:
    cancelled, told = semaphore("cancel", "gpu", "--owner", EVE), ended(waiting)

    assert cancelled.out == "cancelled the wait for gpu\n"
    assert (told.code, told.error["type"]) == (3, "WaitCancelled")
    assert semaphore("cancel", "gpu", "--owner", EVE).code == 4


def test_ctrl_c_gives_the_place_up(semaphore: Run, waiting: subprocess.Popen[str]) -> None:
    waiting.send_signal(signal.SIGINT)

    assert ended(waiting).code == 130
    assert semaphore("waiters", "gpu", "--json").json["waiters"] == []


def test_a_lease_is_shown_renewed_and_made_endless(semaphore: Run) -> None:
    semaphore("release", "gpu", "--owner", ANN)
    taken = semaphore("acquire", "gpu", "--owner", ANN, "--lease", "60", "--json").json
    left_s = semaphore("holders", "gpu", "--json").json["holders"][0]["lease_left_s"]
    renewed = semaphore("renew", "gpu", "--owner", ANN, "--lease", "120", "--json").json

    assert taken["lease_s"] == 60
    assert 50 <= left_s <= 60
    assert json.dumps(renewed) == json.dumps({**renewed, "fence": taken["fence"], "lease_s": 120})
    assert semaphore("renew", "gpu", "--owner", ANN).out == "renewed gpu until it is released\n"
    assert semaphore("holders", "gpu", "--json").json["holders"][0]["lease_left_s"] is None


def test_a_renewal_of_another_hold_or_of_none_is_lost(semaphore: Run) -> None:
    assert semaphore("renew", "gpu", "--owner", ANN, "--fence", "1", "--lease", "9").code == 4
    assert semaphore("renew", "gpu", "--owner", EVE, "--lease", "9").code == 4


def test_a_lease_that_cannot_be_is_a_usage_error(semaphore: Run) -> None:
    assert semaphore("acquire", "gpu", "--owner", ANN, "--lease", "1").code == 2

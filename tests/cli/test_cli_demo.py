"""`slotkeeper demo`: it ends by itself, it checks what it saw, and it leaves nothing behind."""

from __future__ import annotations

import os
import pty
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import PATIENCE_S, Run

from slotkeeper import Client
from slotkeeper.cli import demo, visits
from slotkeeper.cli.visits import Visit, check, most_inside, percentile


def visit(token: int, entered: int, left: int, *, fence: int | None = None, worker: int = 1) -> Visit:
    """Make a visit; unless told, its fence is when it began."""
    return Visit(worker, token, entered if fence is None else fence, entered, left, 0.0)


def test_a_record_that_keeps_the_promise_passes() -> None:
    record = [visit(1, 0, 10), visit(2, 5, 15), visit(1, 10, 20), visit(2, 16, 18)]

    assert check(record, 2) == visits.Finding(2, ())


def test_one_too_many_inside_is_found() -> None:
    found = check([visit(1, 0, 10), visit(2, 1, 11), visit(3, 2, 12)], 2)

    assert found.most_inside == 3
    assert found.violations == ("3 were inside at once, and there are 2 slots",)


def test_two_holders_of_one_token_are_found() -> None:
    found = check([visit(1, 0, 10, worker=4), visit(1, 9, 20, worker=5)], 2)

    assert found.violations == ("token 1 had two holders: worker 4 and worker 5",)


def test_a_fence_that_does_not_grow_is_found() -> None:
    found = check([visit(1, 0, 10, fence=7), visit(1, 11, 20, fence=7)], 2)

    assert found.violations == ("token 1: fence 7 came after 7",)


def test_nobody_was_inside_an_empty_record() -> None:
    assert most_inside([]) == 0
    assert percentile([], 99) == 0.0


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(n) for n in range(1, 101)]

    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 50)) == (50.0, 99.0, 7.0)


def test_the_demo_ends_with_a_check_that_passed(run: Run) -> None:
    ran = run("demo", "--jobs", "15", "--workers", "6", "--slots", "2")

    assert ran.code == 0
    assert "check passed" in ran.out
    assert "of 2 slots" in ran.out


def test_the_demo_tells_programs_one_document(run: Run) -> None:
    ran = run("demo", "--jobs", "15", "--workers", "6", "--slots", "2", "--json")

    assert ran.err == ""
    assert set(ran.json) == {
        *("workers", "slots", "jobs", "seconds", "jobs_per_s", "waited_ms"),
        *("most_inside", "left_held", "violations", "ok"),
    }
    assert (ran.json["workers"], ran.json["slots"], ran.json["jobs"]) == (6, 2, 15)
    assert ran.json["most_inside"] <= 2
    assert (ran.json["left_held"], ran.json["violations"], ran.json["ok"]) == (0, [], True)
    assert set(ran.json["waited_ms"]) == {"p50", "p99"}


def test_a_broken_promise_is_exit_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "check", lambda *_: visits.Finding(4, ("4 were inside at once",)))

    ran = run("demo", "--jobs", "3", "--workers", "2")

    assert ran.code == 1
    assert "VIOLATION: 4 were inside at once" in ran.out


def test_it_runs_on_a_file_of_its_own_even_if_the_environment_names_a_database(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLOTKEEPER_DATABASE", "cassandra://127.0.0.1:1/production")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run("demo", "--jobs", "3", "--workers", "2").code == 0
    assert list(tmp_path.iterdir()) == []


def test_on_a_named_database_it_deletes_its_semaphore(run: Run, embedded: str) -> None:
    assert run("demo", "--jobs", "3", "--workers", "2", "--database", embedded).code == 0

    assert run("semaphore", "list", "--database", embedded, "--json").json["semaphores"] == []


def test_it_ends_when_its_time_is_over(run: Run) -> None:
    assert run("demo", "--seconds", "0.3", "--workers", "3", "--json").json["seconds"] < PATIENCE_S


def test_a_worker_that_fails_ends_the_demo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Client, name: str, owner: object, **options: object) -> None:
        raise RuntimeError("the client broke")

    monkeypatch.setattr(Client, "acquire", broken)

    ran = run("demo", "--seconds", "60")

    assert ran.code == 1
    assert "the client broke" in ran.err


def test_on_a_terminal_it_is_a_table_that_moves(started: Callable[..., subprocess.Popen[str]]) -> None:
    ours, theirs = pty.openpty()
    with started("demo", "--jobs", "20", stderr=theirs) as process:
        os.close(theirs)
        assert process.stdout is not None
        shown = _all_of(ours)
        out = process.stdout.read()
        process.wait(PATIENCE_S)
    os.close(ours)

    assert process.returncode == 0
    assert "check passed" in out
    assert "\x1b[" in shown
    assert "worker" in shown


def _all_of(terminal: int) -> str:
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other side has closed it
            part = b""
        if not part:
            return shown.decode()
        shown += part

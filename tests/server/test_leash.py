"""What a leash holds goes with its owner, even when the owner is killed outright."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cluster
from cluster.leash import Leash

OWNER = """
import sys
from cluster.leash import Leash
leash = Leash(["sh", "-c", 'echo gone > "$0"', sys.argv[1]])
print("ready", flush=True)
sys.stdin.read()
"""


def test_letting_go_runs_the_command(tmp_path: Path) -> None:
    leash = Leash(["touch", str(tmp_path / "gone")])
    assert not (tmp_path / "gone").exists()

    leash.let_go()

    assert (tmp_path / "gone").exists()


def test_letting_go_twice_is_letting_go_once(tmp_path: Path) -> None:
    leash = Leash(["mkdir", str(tmp_path / "gone")])

    leash.let_go()
    leash.let_go()

    assert (tmp_path / "gone").exists()


def test_a_killed_owner_lets_go(tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    path = Path(cluster.__file__).parent.parent
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, told],
        env={**os.environ, "PYTHONPATH": str(path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"ready\n"
        owner.kill()

        assert told.read_text() == "gone\n"  # opening a fifo waits for its writer

"""Command lines that see nothing of the machine: no variables, no data folder, no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from commandline import PATIENCE_S, Ran, Run

from slotkeeper.cli.main import slotkeeper

OURS = ("SLOTKEEPER_", "CASSANDRA_", "CQLSH_")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def run() -> Run:
    """Run a command line in this process. It must not raise: whatever happens has an exit code."""

    def invoke(*args: str, stdin: str = "") -> Ran:
        result = CliRunner().invoke(slotkeeper, args, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def started() -> Callable[..., subprocess.Popen[str]]:
    """Start a command line as a process of its own."""

    def start(*args: str, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([sys.executable, "-m", "slotkeeper", *args], text=True, cwd="/", **pipes)

    return start


@pytest.fixture
def run_process(started: Callable[..., subprocess.Popen[str]]) -> Run:
    """Run a command line as a process of its own."""

    def run_to_end(*args: str, **options: Any) -> Ran:
        with started(*args, **options) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return Ran(process.returncode, out, err)

    return run_to_end


@pytest.fixture
def embedded(tmp_path: Path) -> str:
    """The URL of an embedded store that is not there yet."""
    return f"sqlite:///{tmp_path}/slots.db"

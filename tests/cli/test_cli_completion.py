"""`slotkeeper completion`: the scripts of four shells, and what they are answered."""

from __future__ import annotations

import os

import pytest
from commandline import Run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_gets_its_script(run: Run, shell: str) -> None:
    ran = run("completion", shell)

    assert ran.code == 0
    assert "_SLOTKEEPER_COMPLETE" in ran.out
    assert f"{shell}_complete" in ran.out


def test_another_shell_is_a_usage_error(run: Run) -> None:
    assert run("completion", "csh").code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("slotkeeper sem", "semaphore"),
        ("slotkeeper semaphore acq", "acquire"),
        ("slotkeeper doctor --data", "--database"),
    ],
)
def test_the_script_completes_commands_and_options(run_process: Run, words: str, expected: str) -> None:
    asked = {"_SLOTKEEPER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    ran = run_process(env={**os.environ, **asked})

    assert (ran.code, ran.out.split()) == (0, [f"plain,{expected}"])

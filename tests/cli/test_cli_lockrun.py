"""A command below a lock: what reaches it, what comes of its end, and that it never outlives the lock."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from eventually import until
from lockrunner import CHILD, runner
from terminals import CTRL_C, CTRL_Z, Terminal, shell

from slotkeeper.cli.child import CommandNotExecutable, CommandNotFound, started

PATIENCE_S = 30
FENCE = str((3 << 32) + 1)


def hello(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what the command says first: it runs, and hears signals."""
    said: dict[str, Any] = json.loads(line(process))
    return said


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return how the run ended, by its own account."""
    _, err = process.communicate(timeout=PATIENCE_S)
    told: dict[str, Any] = json.loads(err)
    return told


def is_gone(pid: int) -> bool:
    """Tell whether a process is no more, or a zombie that nobody has waited for yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)],
)
def test_the_commands_code_comes_through(script: str, code: int) -> None:
    with runner("renewed", 5, "sh", "-c", script) as process:
        told = ended(process)

    assert told == {"code": code, "lost": False, "key": None, "handlers_back": True, "left_s": pytest.approx(60, abs=1)}


def test_the_command_finds_the_lock_in_its_environment_and_the_usual_signals() -> None:
    with runner("renewed", 5, "sh", "-c", "env; kill -PIPE $$; echo survived") as process:
        out, err = process.communicate(timeout=PATIENCE_S)

    assert {"SLOTKEEPER_LOCK_NAME=nightly", "SLOTKEEPER_LOCK_ID=6d4f2ab0", f"SLOTKEEPER_LOCK_FENCE={FENCE}"} <= {
        *out.splitlines()
    }
    assert json.loads(err)["code"] == 128 + signal.SIGPIPE
    assert "survived" not in out


def test_the_command_has_our_input_and_output() -> None:
    with runner("renewed", 5, "cat", stdin=subprocess.PIPE) as process:
        out, err = process.communicate("through and through", timeout=PATIENCE_S)

    assert (out, json.loads(err)["code"]) == ("through and through", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_to_us_reaches_the_command_in_a_group_of_its_own(number: signal.Signals) -> None:
    with runner("renewed", 5, "child") as process:
        assert hello(process)["group"] != os.getpgid(process.pid)
        process.send_signal(number)
        assert line(process) == number.name
        process.terminate()
        assert line(process) == "SIGTERM"
        assert ended(process)["code"] == 7


def test_what_nohup_has_us_ignore_stays_ignored() -> None:
    script = "trap '' HUP; exec " + " ".join([sys.executable, "-m", "lockrunner", "renewed", "5", "child"])
    with subprocess.Popen(
        ["sh", "-c", script], cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        hello(process)
        process.send_signal(signal.SIGHUP)
        process.terminate()
        assert line(process) == "SIGTERM"
        assert ended(process)["code"] == 7


def test_a_lock_that_is_taken_away_ends_the_command(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    with runner(str(taken), 5, "child") as process:
        hello(process)
        taken.touch()
        assert line(process) == "SIGTERM"
        told = ended(process)

    assert (told["code"], told["lost"]) == (7, True)


def test_a_command_that_does_not_end_is_killed_while_the_lock_is_still_ours() -> None:
    with runner("5", 0.5, *CHILD, "deaf") as process:
        hello(process)
        assert line(process) == "SIGTERM"
        told = ended(process)

    assert (told["code"], told["lost"]) == (128 + signal.SIGKILL, True)
    assert -1 < told["left_s"] < 0.5  # killed as the lease was about to end


def test_what_the_command_has_started_ends_with_it_when_the_lock_is_lost() -> None:
    with runner("5", 0.5, *CHILD, "parent") as process:
        first, second = hello(process), hello(process)
        told = ended(process)

    assert first["group"] == second["group"]
    until(lambda: is_gone(first["pid"]) and is_gone(second["pid"]))
    assert told["lost"]


def test_what_a_command_leaves_behind_is_killed_where_the_lock_was_lost_as_it_ended(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    script = f"{' '.join(CHILD)} deaf & echo $!; read word < {tmp_path}/fifo; touch {taken}"
    os.mkfifo(tmp_path / "fifo")
    with runner(str(taken), 30, "sh", "-c", script) as process:
        left = int(line(process))
        hello(process)
        (tmp_path / "fifo").write_text("go on\n")
        told = ended(process)

    assert told["lost"]
    until(lambda: is_gone(left))


def test_what_a_command_leaves_behind_while_the_lock_is_held_is_its_own_affair() -> None:
    with runner("renewed", 5, "sh", "-c", f"{' '.join(CHILD)} & echo $!") as process:
        left = int(line(process))
        hello(process)
        assert ended_alone(process)["lost"] is False
        assert not is_gone(left)
        os.kill(left, signal.SIGTERM)
        until(lambda: is_gone(left))


def ended_alone(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return how a run ended whose output somebody else still has."""
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr is not None
    told: dict[str, Any] = json.loads(process.stderr.readline())
    return told


def test_a_stopped_command_is_ended_too() -> None:
    with runner("5", 1, "child") as process:
        child = hello(process)["pid"]
        os.kill(child, signal.SIGSTOP)
        until(lambda: state(process.pid) == "T")
        until(lambda: is_gone(child))


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_we_stop_and_go_on_with_the_command() -> None:
    with runner("renewed", 5, "child") as process:
        child = hello(process)["pid"]
        process.send_signal(signal.SIGTSTP)
        until(lambda: state(child) == "T" and state(process.pid) == "T")
        process.send_signal(signal.SIGCONT)
        assert line(process) == "SIGCONT"
        process.terminate()
        assert line(process) == "SIGTERM"
        assert ended(process)["code"] == 7


@pytest.mark.parametrize("how", [(), ("deaf",)])
def test_kill_9_of_us_ends_the_command(how: tuple[str, ...]) -> None:
    with runner("renewed", 0.3, *CHILD, *how) as process:
        child = hello(process)["pid"]
        process.kill()
        assert line(process) == "SIGTERM"
        until(lambda: is_gone(child))


def test_a_command_ends_with_the_lock_while_we_are_stopped() -> None:
    with runner("5", 0.5, *CHILD, "deaf") as process:
        child = hello(process)["pid"]
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        until(lambda: is_gone(child))
        assert time.monotonic() - began < 15
        process.send_signal(signal.SIGCONT)
        assert ended(process)["lost"]


def test_a_watchdog_that_was_killed_is_no_harm() -> None:
    with runner("renewed", 5, "child") as process:
        hello(process)
        (watchdog,) = [pid for pid in children(process.pid) if "watchdog" in command_of(pid)]
        os.kill(watchdog, signal.SIGKILL)
        process.terminate()
        assert ended(process)["code"] == 7


def children(pid: int) -> list[int]:
    return [int(found) for found in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_a_command_that_is_not_there_or_cannot_be_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x00\x01")
    garbage.chmod(0o755)

    with pytest.raises(CommandNotFound, match="'no-such-command' is no command"), started(["no-such-command"], {}):
        pass
    for path in (plain, garbage, tmp_path):
        with pytest.raises(CommandNotExecutable, match="cannot be run"), started([str(path)], {}):
            pass


@pytest.mark.parametrize(
    ("how", "said"), [("no-such-command", "CommandNotFound"), ("/etc/passwd", "CommandNotExecutable")]
)
def test_a_command_that_fails_to_start_leaves_nothing_behind(how: str, said: str) -> None:
    with runner("renewed", 5, how) as process:
        _, err = process.communicate(timeout=PATIENCE_S)

    assert err.startswith(said)


RUN = " ".join([sys.executable, "-m", "lockrunner", "renewed", "5"])


def test_on_a_terminal_the_command_gets_the_keys_and_a_script_around_us_the_end() -> None:
    """A shell script on a terminal runs us and would go on: Ctrl-C ends the command, then the script too."""
    script = f"{RUN} sh -c 'read word; echo got $word; read more'; echo went on"
    with shell(["-c", script]) as terminal:
        terminal.press("hello\n")
        terminal.read("got hello")
        terminal.press(CTRL_C)
        terminal.read()

    assert '"code": 130' in terminal.seen
    assert "went on" not in terminal.seen
    assert terminal.status is not None
    assert os.WTERMSIG(terminal.status) == signal.SIGINT


def stop_and_go_on(terminal: Terminal) -> None:
    """Press Ctrl-Z, have the shell go on with what has stopped, and give it the word that it reads."""
    terminal.press(CTRL_Z)
    terminal.read("Stopped")
    terminal.press("fg\n")
    terminal.read("lockrunner")
    terminal.press("hello\n")
    terminal.read("got-hello")


def test_ctrl_z_stops_us_with_the_command_and_fg_has_both_go_on() -> None:
    with shell(["-i"], {**os.environ, "PS1": "$ "}) as terminal:
        terminal.press(f"{RUN} sh -c 'echo rea''dy; read word; echo got-$word'\n")
        terminal.read("ready")
        stop_and_go_on(terminal)
        terminal.read('"code": 0')
        terminal.press("exit\n")
        terminal.read()


def slowly_lent(lending: str, script: str) -> str:
    """Return a line for a shell that runs a script below a lock, with the terminal lent to it as `lending` says."""
    patched = (
        f"import os, time, lockrunner as run; lend = os.tcsetpgrp; os.tcsetpgrp = lambda *to: {lending}; run.main()"
    )
    return shlex.join([sys.executable, "-c", patched, "renewed", "5", "sh", "-c", script]) + "\n"


def test_ctrl_z_in_the_moment_in_which_the_command_gets_the_terminal() -> None:
    with shell(["-i"], {**os.environ, "PS1": "$ "}) as terminal:
        run = "sleep 0.3; echo rea''dy; read word; echo got-$word"
        terminal.press(slowly_lent("(lend(*to), time.sleep(1))", run))
        terminal.read("ready")
        stop_and_go_on(terminal)
        terminal.press("exit\n")
        terminal.read()


def test_a_command_that_reads_before_it_has_got_the_terminal_goes_on_with_it() -> None:
    with shell(["-i"], {**os.environ, "PS1": "$ "}) as terminal:
        run = "echo rea''dy; read word; echo got-$word"
        terminal.press(slowly_lent("(time.sleep(1), lend(*to))", run))
        terminal.read("ready")
        terminal.press("hello\n")
        terminal.read("got-hello")
        terminal.press("exit\n")
        terminal.read()

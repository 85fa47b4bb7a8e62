"""`slotkeeper lock`: list, acquire, renew, release, status, run and serve, on a real node and on a database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import PATIENCE_S, Ran, Run
from eventually import until
from locknodes import RunningNode, client_of, new_database, running_node
from terminals import CTRL_C, shell

from slotkeeper.cli.lockservice import DEFAULT_URL
from slotkeeper.locktable.remote import URL, LockClient
from slotkeeper.locktable.service.grants import Permit

Start = Callable[..., subprocess.Popen[str]]
CHILD = (sys.executable, "-S", str(Path(__file__).parents[1] / "lockchild.py"))
TOKEN = "token-for-the-tests-0123"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that is a cluster of its own."""
    with running_node(new_database(tmp_path_factory.mktemp("lock"))) as node:
        yield node


@pytest.fixture
def client(node: RunningNode) -> Iterator[LockClient]:
    """Another client of the node."""
    with client_of(node) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_held(node: RunningNode) -> Iterator[None]:
    yield
    with client_of(node) as client:
        for lock in client.locks():
            client.release(lock)


@pytest.fixture
def lock(run: Run, node: RunningNode) -> Run:
    """`slotkeeper lock` that asks the node."""

    def command(name: str, *args: str) -> Ran:
        return run("lock", name, "--url", node.url, *args)

    return command


# --- one command after the other ------------------------------------------------------------------------------------------


def test_a_lock_is_taken_listed_renewed_and_given_back(lock: Run) -> None:
    taken = lock("acquire", "network/blue", "--holder", "job 7", "--lease", "1m", "--json").json
    listed = lock("list")
    renewed = lock("renew", "network/blue", "--id", taken["id"], "--lease", "90")
    released = lock("release", "network/blue", "--id", taken["id"])

    assert set(taken) == {"name", "id", "holder", "node", "fence", "acquired_at", "expires_in_s"}
    assert (taken["name"], taken["holder"], taken["node"]) == ("network/blue", "job 7", "n1")
    assert 50 < taken["expires_in_s"] <= 60
    assert listed.out.split("\n")[0].split() == ["NAME", "HOLDER", "NODE", "ACQUIRED_AT", "EXPIRES_IN", "FENCE"]
    row = listed.out.split("\n")[1].split()
    assert row[:4] == ["network/blue", "job", "7", "n1"]
    assert row[4].endswith("Z")
    assert row[5] in ("1m0s", *(f"{left}s" for left in range(50, 60)))
    assert row[6] == str(taken["fence"])
    assert renewed.out == "cluster lock network/blue renewed for 1m30s\n"
    assert (released.code, released.out) == (0, "cluster lock network/blue released\n")
    assert lock("list", "--json").json == {"locks": []}
    assert lock("ls", "--json").json == {"locks": []}


def test_the_holder_is_whoever_asks(lock: Run, client: LockClient) -> None:
    assert "fence" in lock("acquire", "a").out
    (held,) = client.locks()
    assert "@" in held.holder


def test_a_held_lock_ends_with_3(lock: Run, client: LockClient) -> None:
    client.acquire("a", holder="job 7")

    ran = lock("acquire", "a", "--wait", "100ms")

    assert ran.code == 3
    assert ran.err.startswith("slotkeeper: lock a is held by job 7 on n1 until ")
    assert lock("acquire", "a", "--json").error["type"] == "LockHeld"


def test_what_is_not_held_ends_with_4(lock: Run, client: LockClient) -> None:
    client.acquire("b")

    assert (lock("release", "a").code, lock("release", "a").err) == (4, "slotkeeper: cluster lock a is not held\n")
    for command in ("release", "renew"):
        ran = lock(command, "b", "--id", "other")
        told = "slotkeeper: cluster lock b is not held under other: it was released, or its lease ended\n"
        assert (ran.code, ran.err) == (4, told)


def test_a_release_looks_the_id_up(lock: Run, client: LockClient) -> None:
    held = client.acquire("a")

    assert lock("release", "a", "--json").json == {"name": "a", "id": held.id, "released": True}
    assert client.locks() == []


def test_the_status_tells_who_speaks(lock: Run, node: RunningNode) -> None:
    text, document = lock("status").out, lock("status", "--json").json

    assert f"n1 ({node.url}) (this node)" in text
    assert (document["cluster"], document["speaks"], document["rebuilt"]) == ("cluster", True, True)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("acquire", "a", "--lease", "soon"), "is no duration"),
        (("acquire", "a", "--wait", "-1s"), "less than nothing"),
        (("acquire", "a\nb"), "printable"),
        (("acquire", ""), "needs a name"),
        (("renew", "a"), "--id"),
        (("run", "a"), "COMMAND"),
        (("run", "a", "--lease", "10", "--kill-after", "6", "--", "true"), "half of the lease"),
        (("list", "--url", "localhost"), "http://"),
        (("list", "--token-file", "/nowhere"), "holds no token"),
        (("list", "--ca-file", "/nowhere"), "certificates to trust are for"),
        (("status", "--direct"), "no node to ask"),
    ],
)
def test_what_cannot_be_meant_ends_with_2(lock: Run, args: tuple[str, ...], told: str) -> None:
    ran = lock(*args)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_nodes_that_do_not_answer_end_with_6(run: Run) -> None:
    ran = run("lock", "list", "--url", "http://127.0.0.1:9", "--timeout", "0.1")

    assert ran.code == 6
    assert "No lock node could be asked" in ran.err


def test_a_token_comes_from_a_file_or_the_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    with running_node(new_database(tmp_path), tokens={TOKEN: Permit("ci", ("ci/",))}) as node:
        monkeypatch.setenv("SLOTKEEPER_LOCK_URL", f"http://127.0.0.1:9,{node.url}")
        assert run("lock", "acquire", "ci/a", "--token-file", str(path)).code == 0
        assert run("lock", "list").code == 6
        monkeypatch.setenv("SLOTKEEPER_LOCK_TOKEN", TOKEN)
        assert len(run("lock", "list", "--json").json["locks"]) == 1
        refused = run("lock", "acquire", "other")
    assert refused.code == 6
    assert "does not stand for the lock 'other'" in refused.err
    assert TOKEN not in refused.err


def test_the_default_url_is_the_clients() -> None:
    assert DEFAULT_URL == URL


def test_direct_locks_need_no_service(run: Run, embedded: str) -> None:
    def direct(*args: str) -> Ran:
        return run("lock", *args, "--direct", "--database", embedded)

    taken = direct("acquire", "a", "--lease", "20", "--json").json
    assert direct("acquire", "a").code == 3
    assert [each["id"] for each in direct("list", "--json").json["locks"]] == [taken["id"]]
    assert direct("renew", "a", "--id", taken["id"]).code == 0
    assert run("lock", "list", "--direct", "--database", embedded, "--domain", "other", "--json").json == {"locks": []}
    assert direct("release", "a").out == "cluster lock a released\n"


# --- run ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def start_run(started: Start, node: RunningNode) -> Start:
    """`slotkeeper lock run` as a process of its own."""

    def start(*args: str) -> subprocess.Popen[str]:
        return started("lock", "run", "--url", node.url, *args)

    return start


def ended(process: subprocess.Popen[str]) -> Ran:
    with process:
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            process.kill()  # the end of the with block waits for it
            raise
    return Ran(process.returncode, out, err)


def hello(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    said: dict[str, Any] = json.loads(process.stdout.readline())
    return said


def test_a_command_runs_while_the_lock_is_held(start_run: Start, node: RunningNode, client: LockClient) -> None:
    process = start_run("job", "--holder", "nightly", "--", *CHILD)
    said = hello(process)
    (held,) = client.locks()
    process.terminate()

    assert said["lock"] == {
        "SLOTKEEPER_LOCK_NAME": "job",
        "SLOTKEEPER_LOCK_ID": held.id,
        "SLOTKEEPER_LOCK_FENCE": str(held.fence),
        "SLOTKEEPER_LOCK_URL": node.url,
    }
    assert held.holder == "nightly"
    assert ended(process).code == 7
    assert client.locks() == []


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 200", 200), ("kill -9 $$", 137)])
def test_the_commands_exit_code_is_ours(start_run: Start, client: LockClient, script: str, code: int) -> None:
    ran = ended(start_run("job", "--", "sh", "-c", f"echo out; {script}"))

    assert (ran.code, ran.out, ran.err) == (code, "out\n", "")
    assert client.locks() == []


def test_a_short_lease_is_renewed_as_long_as_the_command_runs(start_run: Start, client: LockClient) -> None:
    process = start_run("job", "--lease", "3", "--", *CHILD)
    hello(process)
    (first,) = client.locks()
    until(lambda: client.locks()[0].expires_at > first.expires_at and client.locks()[0].id == first.id)
    until(lambda: (client.locks()[0].expires_at - first.expires_at).total_seconds() > 3)
    process.terminate()
    assert ended(process).code == 7


def test_a_held_lock_starts_no_command(start_run: Start, client: LockClient, tmp_path: Path) -> None:
    client.acquire("job")
    ran = ended(start_run("job", "--wait", "0.1", "--", "touch", str(tmp_path / "started")))

    assert ran.code == 3
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_no_lock_is_waited_for_by_what_cannot_run(
    start_run: Start, client: LockClient, command: str, code: int
) -> None:
    client.acquire("job")
    ran = ended(start_run("job", "--wait", "1m", "--", command))

    assert ran.code == code
    assert command in ran.err


def test_a_lock_that_is_taken_away_ends_the_command(start_run: Start, client: LockClient) -> None:
    process = start_run("job", "--lease", "3", "--", *CHILD)
    hello(process)
    (held,) = client.locks()
    client.release(held)
    ran = ended(process)

    assert ran.code == 4
    assert ran.out.split()[0] == "SIGTERM"
    assert held.id in ran.err


def test_a_deaf_command_is_killed_before_the_lease_ends_when_its_node_is_gone(started: Start, tmp_path: Path) -> None:
    with running_node(new_database(tmp_path)) as node:
        process = started(
            "lock", "run", "--url", node.url, "--timeout", "1", "job", "--lease", "5", "--", *CHILD, "deaf"
        )
        pid = hello(process)["pid"]
        node.stop()
        ran = ended(process)

    assert ran.code == 4
    assert ran.out.split()[0] == "SIGTERM"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_is_told_to_end_while_it_waits_leaves_the_line(
    start_run: Start, node: RunningNode, client: LockClient, number: signal.Signals, code: int
) -> None:
    held = client.acquire("job")
    process = start_run("job", "--wait", "1m", "--", *CHILD)
    until(lambda: node.node.speaking.table.waiting == 1)
    process.send_signal(number)

    assert ended(process).code == code
    until(lambda: node.node.speaking.table.waiting == 0, bound_s=3)
    client.release(held)
    assert client.locks() == []


def test_a_lock_that_cannot_be_given_back_is_told_and_the_code_stays(started: Start, tmp_path: Path) -> None:
    with running_node(new_database(tmp_path)) as node:
        process = started("lock", "run", "--url", node.url, "--timeout", "0.2", "job", "--", *CHILD)
        hello(process)
        node.stop()
        process.terminate()
        ran = ended(process)

    assert ran.code == 7
    assert "comes free with its lease" in ran.err


def test_ctrl_c_on_a_terminal_ends_the_command_gives_the_lock_back_and_ends_the_script(
    node: RunningNode, client: LockClient
) -> None:
    ours = f"{sys.executable} -m slotkeeper lock run --url {node.url} job"
    with shell(["-c", f"{ours} -- sh -c 'read word; echo got $word; read more'; echo went on"]) as terminal:
        terminal.press("hello\n")
        terminal.read("got hello")
        assert len(client.locks()) == 1
        terminal.press(CTRL_C)
        terminal.read()

    assert client.locks() == []
    assert "went on" not in terminal.seen
    assert terminal.status is not None
    assert os.WTERMSIG(terminal.status) == signal.SIGINT


# --- serve ----------------------------------------------------------------------------------------------------------------


def test_a_node_serves_until_it_is_told_to_stop(started: Start, run: Run, embedded: str) -> None:
    args = ("--node", "n1", "--cluster", "home", "--listen", "127.0.0.1:0", "--database", embedded, "--json")
    process = started("lock", "serve", "--election-lease", "3", *args)
    assert process.stdout is not None
    told = "".join(iter(process.stdout.readline, "}\n")) + "}"
    document = json.loads(told)
    url = document["url"]
    ran = run("lock", "acquire", "a", "--url", url, "--wait", "20")
    process.terminate()

    assert document == {"url": url, "node": "n1", "cluster": "home", "pid": process.pid}
    assert ran.code == 0
    assert ended(process).code == 0


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--listen", "nowhere"), "HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "HOST:PORT"),
        (("--node", "a/b"), "without a slash"),
        (("--tls-cert", "x"), "belong together"),
        (("--advertise", "n1"), "http://"),
        (("--election-lease", "1"), "election-lease"),
        (("--listen", "0.0.0.0:0"), "a token is needed"),
        (("--token-file", "/nowhere"), "cannot be read"),
        (("--peer-token-file", "/nowhere"), "holds no token"),
        (("--peer-ca-file", "/nowhere"), "cannot be read"),
    ],
)
def test_a_node_that_cannot_be_meant_ends_with_2(run: Run, embedded: str, args: tuple[str, ...], told: str) -> None:
    ran = run("lock", "serve", "--node", "n1", "--cluster", "home", "--database", embedded, *args)

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_place_that_is_taken_ends_with_6(run: Run, embedded: str, node: RunningNode) -> None:
    taken = node.url.removeprefix("http://")

    assert run("lock", "serve", "--node", "n1", "--cluster", "c", "--database", embedded, "--listen", taken).code == 6

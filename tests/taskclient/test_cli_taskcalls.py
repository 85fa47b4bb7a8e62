"""`slotkeeper tasks add`, `claim` and the others, on a real service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from commandline import PATIENCE_S, Ran, Run
from eventually import until
from lossyproxy import lossy
from servedtasks import ServedTasks, served

from slotkeeper.cli.main import slotkeeper

TOKEN = "0123456789abcdef"
OWNER = ("--owner", "me")


@pytest.fixture(scope="module")
def shared_service() -> Iterator[ServedTasks]:
    """A service that wants a token; each test has a group of its own."""
    with served(token=TOKEN) as running:
        yield running


@pytest.fixture(autouse=True)
def service(shared_service: ServedTasks, monkeypatch: pytest.MonkeyPatch) -> ServedTasks:
    """The service, named by the environment."""
    for name in [name for name in os.environ if name.startswith("SLOTKEEPER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLOTKEEPER_TASKS_URL", shared_service.url)
    monkeypatch.setenv("SLOTKEEPER_TASKS_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "100")
    return shared_service


@pytest.fixture
def run() -> Run:
    """Run `slotkeeper tasks`. It must not raise: whatever happens has an exit code."""

    def invoke(*args: str, stdin: bytes = b"") -> Ran:
        result = CliRunner().invoke(slotkeeper, ["tasks", *args], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group that only this test has."""
    return str(request.node.name)


def test_a_task_is_added_claimed_renewed_and_done(run: Run, group: str) -> None:
    added = run("add", group, "in.txt", "--json").json
    assert (added["group"], added["data"], added["claims"]) == (group, "in.txt", 0)

    claimed = run("claim", group, "--for", "60", *OWNER, "--json").json
    renewed = run("renew", str(claimed["id"]), "--for", "90", *OWNER, "--json").json
    assert (claimed["owner"], claimed["claims"], renewed["id"]) == ("me", 1, claimed["id"] + 1)
    assert renewed["available_at_ns"] > claimed["available_at_ns"]

    ended = run("done", str(renewed["id"]), *OWNER, "--json")
    assert (ended.code, ended.json) == (0, {"id": renewed["id"], "done": True})
    assert run("list", group, "--owned", "--json").json == {"group": group, "tasks": []}


def test_people_read_pairs_and_tables(run: Run, group: str) -> None:
    task_id = run("add", group, "in.txt").out.strip()
    assert task_id.isdigit()
    assert "in.txt" in run("list", group).out
    assert run("claim", group, "--for", "60", *OWNER).out.split()[:4] == ["id", str(int(task_id) + 1), "group", group]
    assert run("list", group).out.count("\n") == 1
    assert "in.txt" in run("list", group, "--owned").out
    assert group in run("groups").out.splitlines()
    stats = run("stats")
    assert group in stats.out
    assert "the last id is" in stats.err


def test_data_comes_from_a_file_or_from_stdin(run: Run, group: str, tmp_path: Path) -> None:
    raw = bytes(range(256))
    (tmp_path / "data").write_bytes(raw)

    assert run("add", group, "--file", str(tmp_path / "data")).code == 0
    assert run("add", group, "-", stdin=b"piped\n").code == 0
    assert run("add", group, "--file", "-", stdin=b"piped too").code == 0
    assert run("add", group).code == 0

    told = run("list", group, "--json").json["tasks"]
    assert [each["data"] for each in told] == [None, "piped\n", "piped too", ""]
    assert told[0]["data_base64"].startswith("AAECAwQF")
    assert "(256 bytes)" in run("list", group).out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("add", "g", "a", "--file", "b"), "once"),
        (("add", "g", "--file", "/nowhere/at/all"), "cannot be read"),
        (("add", ""), "a group is a string that is not empty"),
        (("claim", "g"), "--for"),
        (("claim", "--for", "5"), "GROUP"),
        (("done", "41"), "--owner"),
        (("renew", "x", "--for", "5", *OWNER), "integer"),
        (("groups", "--url", "localhost"), "http://HOST:PORT"),
        (("groups", "--token-file", "/nowhere"), "token file"),
        (("groups", "--url", "https://localhost", "--tls-ca-file", "/nowhere"), "certificates"),
    ],
)
def test_what_cannot_be_meant_is_usage(run: Run, args: tuple[str, ...], said: str) -> None:
    ran = run(*args)

    assert ran.code == 2
    assert said in ran.err


def test_a_key_adds_once_and_after_puts_off(run: Run, group: str) -> None:
    first = run("add", group, "x", "--key", group, "--after", "1000").out
    assert run("add", group, "x", "--key", group).out == first
    assert run("list", group, "--json").json["tasks"] == []
    assert len(run("list", group, "--owned", "--json").json["tasks"]) == 1


def test_nothing_to_claim_is_3(run: Run, group: str) -> None:
    ran = run("claim", group, "other", "--for", "5", "--wait", "0.05", *OWNER, "--json")

    assert (ran.code, ran.error["type"]) == (3, "NothingToClaim")
    assert f"{group}, other" in ran.error["message"]


def test_what_is_gone_or_somebody_elses_is_4(run: Run, group: str) -> None:
    added = run("add", group).out.strip()
    claimed = run("claim", group, "--for", "60", "--json").json  # its owner was drawn

    for call in (("renew", "--for", "5"), ("done",), ("release",)):
        for task_id, said in ((str(claimed["id"]), "owned by somebody else"), (added, "absent")):
            ran = run(call[0], task_id, *call[1:], *OWNER)
            assert (ran.code, said in ran.err) == (4, True), ran.err
    assert run("done", str(claimed["id"]), "--owner", claimed["owner"]).code == 0


def test_the_owner_may_come_from_the_environment(run: Run, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTKEEPER_TASKS_OWNER", "from the environment")
    run("add", group)
    claimed = run("claim", group, "--for", "60", "--json").json

    assert claimed["owner"] == "from the environment"
    assert run("done", str(claimed["id"])).code == 0


def test_a_release_tells_what_went_wrong(run: Run, group: str) -> None:
    run("add", group)
    claimed = run("claim", group, "--for", "60", *OWNER, "--json").json

    released = run("release", str(claimed["id"]), "--error", "no answer", "--after", "60", *OWNER)

    assert "no answer" in released.out
    (shown,) = run("list", group, "--owned", "--json").json["tasks"]
    assert (shown["error"], shown["attempt"], shown["owner"]) == ("no answer", 1, "")


def test_show_has_a_null_for_what_is_gone(run: Run, group: str) -> None:
    task_id = run("add", group, "there").out.strip()

    assert [each and each["data"] for each in run("show", task_id, "999999", "--json").json["tasks"]] == ["there", None]
    ran = run("show", task_id, "999999")
    assert ("there" in ran.out, "999999" in ran.err) == (True, True)


def test_nobody_there_is_6_and_a_wrong_token_too(run: Run, tmp_path: Path) -> None:
    with served() as gone:
        url = gone.url
    ran = run("groups", "--url", url, "--timeout", "0.2", "--json")
    assert (ran.code, ran.error["type"]) == (6, "ServiceUnreachable")

    (tmp_path / "token").write_text("fedcba9876543210\n")
    ran = run("groups", "--token-file", str(tmp_path / "token"))
    assert (ran.code, "token" in ran.err, "fedcba" in ran.err) == (6, True, False)


def test_a_lost_answer_is_7(run: Run, service: ServedTasks, group: str) -> None:
    with lossy(service.port) as proxy:

        def cut(sent: bytes) -> None:
            if sent.startswith(b"POST"):
                proxy.lose_answers = 1_000

        proxy.watch = cut
        ran = run("add", group, "--url", proxy.url, "--timeout", "0.3", "--json")

    assert (ran.code, ran.error["type"]) == (7, "OutcomeUnknown")
    assert len(run("list", group, "--json").json["tasks"]) == 1


def test_tail_prints_what_is_there_and_what_appears_until_ctrl_c(run: Run, group: str) -> None:
    for n in range(3):
        run("add", group, f"old {n}")
    args = ["tasks", "tail", group, "--last", "2", "--every", "0.05", "--json"]
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "slotkeeper", *args], text=True, cwd="/", **pipes) as process:
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["data"] for _ in range(2)] == ["old 1", "old 2"]
        run("add", group, "new")
        assert json.loads(process.stdout.readline())["data"] == "new"
        claimed = run("claim", group, "--for", "60", *OWNER, "--json").json
        assert json.loads(process.stdout.readline())["id"] == claimed["id"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_tail_prints_lines_for_people(run: Run, group: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "slotkeeper", "tasks", "tail", group, "--every", "0.05"],
        text=True,
        cwd="/",
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        run("add", group, "seen")
        line = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
    assert line.endswith("seen\n")
    until(lambda: process.returncode is not None)

"""`slotkeeper tasks serve`, `verify` and `repair`."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from commandline import PATIENCE_S, Run
from servingprocess import serving

from slotkeeper.taskstore import Add, TaskStore
from slotkeeper.taskstore.disk import DiskJournal

Started = Callable[..., subprocess.Popen[str]]
TOKEN = "correct-horse-battery"


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """A journal of twelve tasks, in segments of three or so."""
    where = tmp_path / "tasks"
    with TaskStore(DiskJournal(where, segment_bytes=250)) as store:
        for number in range(12):
            store.update("me", adds=[Add("g", b"%d" % number)])
    return where


@pytest.fixture
def damaged(where: Path) -> Path:
    """The same journal, a segment of it unreadable."""
    path = sorted(where.glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF  # in one of its records
    path.write_bytes(data)
    return where


# Serving


def test_it_says_where_it_listens_and_ends_in_order(started: Started, tmp_path: Path) -> None:
    with started("tasks", "serve", "--journal", f"disk:{tmp_path}/tasks", "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx2.get(f"{url}/readyz", trust_env=False).json() == {"status": "ready"}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (0, "")
    assert err == "slotkeeper: stopped; all that was answered is in the journal\n"


def test_for_programs_it_is_one_document(tmp_path: Path) -> None:
    with serving(f"disk:{tmp_path}/tasks") as process:
        assert process.told == {"url": process.url, "strict": True, "told": [], "pid": process.popen.pid}
        assert process.end(signal.SIGTERM) == 0
        assert process.popen.communicate()[0] == ""


def test_what_the_journal_has_to_tell_is_told(where: Path) -> None:
    with sorted(where.glob("*.log"))[-1].open("ab") as log:
        log.write(b"\0" * 100)

    with serving(f"disk:{where}") as process:
        assert len(process.told["told"]) == 1


@pytest.mark.parametrize("way", ["file", "variable", "variable of the file"])
def test_a_token_is_read_from_a_file_or_a_variable(tmp_path: Path, way: str) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    options = ("--token-file", str(path)) if way == "file" else ()
    variables = {
        "file": {},
        "variable": {"SLOTKEEPER_TASKS_TOKEN": TOKEN},
        "variable of the file": {"SLOTKEEPER_TASKS_TOKEN_FILE": str(path)},
    }[way]

    with serving("memory", "--host", "0.0.0.0", *options, **variables) as process:
        url = process.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{url}/groups", trust_env=False).status_code == 401
        known = {"authorization": f"Bearer {TOKEN}"}
        assert httpx2.get(f"{url}/groups", trust_env=False, headers=known).json() == []


def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with serving("memory", *files) as process:
        assert process.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        assert httpx2.get(f"{process.url}/healthz", verify=trusting, trust_env=False).status_code == 200


def test_a_new_embedded_file_gets_its_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/slots.db"
    for number in (1, 2):
        with serving(f"{url}#mail") as process:
            body = {"clientid": 1, "adds": [{"group": "g"}]}
            said = httpx2.post(f"{process.url}/update", json=body, trust_env=False)
            assert said.json()["tasks"][0]["id"] == number
            assert process.end(signal.SIGTERM) == 0


def test_limits_and_quarantine_are_options() -> None:
    limits = ("--most-bytes", "1024", "--most-named", "2", "--most-wait", "1", "--most-attempts", "1")
    with (
        serving("memory", *limits) as process,
        httpx2.Client(base_url=process.url, trust_env=False, timeout=30.0) as http,
    ):
        assert http.post("/update", content=b" " * 1025).status_code == 413
        assert http.post("/update", json={"clientid": 1, "adds": [{"group": "g"}] * 3}).status_code == 422
        assert http.post("/claim", json={"clientid": 1, "group": "g", "duration": 1, "wait": 1001}).status_code == 422
        http.post("/update", json={"clientid": 1, "adds": [{"group": "g"}]})
        [task] = http.post("/claim", json={"clientid": 1, "group": "g", "duration": 1}).json()["tasks"]
        failed = {"clientid": 1, "id": task["id"], "error": "no luck"}
        assert http.post("/release", json=failed).json()["tasks"][0]["group"] == "g/quarantine"


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--journal", "tape:/dev/tape"), 2, "names no journal: memory, disk:DIR"),
        (("--journal", "disk:"), 2, "names no journal"),
        (("--journal", "cassandra://h/slots?colour=red"), 2, "colour"),
        (("--journal", "memory", "--host", "0.0.0.0"), 2, "a token is needed"),
        (("--journal", "memory", "--host", "192.0.2.1"), 6, "cannot be listened on"),
        (("--journal", "memory", "--token-file", "/nowhere"), 2, "holds no token"),
        (("--journal", "memory", "--lag", "1"), 2, "--opportunistic"),
        (("--journal", "memory", "--tls-cert", "cert.pem"), 2, "belong together"),
        (("--journal", "memory", "--tls-cert", "/no", "--tls-key", "/no"), 2, "cannot be used"),
        (("--journal", "memory", "--port", "70000"), 2, "--port"),
        ((), 2, "--journal"),
        (("--journal", "cassandra://u:secret@127.0.0.1:1/slots?local_dc=d&connect_timeout_s=1"), 6, "127.0.0.1"),
    ],
)
def test_what_keeps_it_from_serving_is_one_line(run: Run, options: Any, code: int, text: str) -> None:
    ran = run("tasks", "serve", "--port", "0", "--json", *options)

    assert (ran.code, ran.out) == (code, "")
    assert text in ran.error["message"]
    assert "secret" not in ran.err


def test_a_token_that_is_none_is_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTKEEPER_TASKS_TOKEN", "too short")

    ran = run("tasks", "serve", "--journal", "memory", "--json")

    assert (ran.code, ran.error["type"]) == (2, "BadTokenFile")
    assert "SLOTKEEPER_TASKS_TOKEN holds no token" in ran.error["message"]
    assert "too short" not in ran.err


def test_nobody_is_fenced_by_who_cannot_listen(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        ran = run("tasks", "serve", "--journal", f"disk:{tmp_path}/tasks", "--port", str(port), "--json")

    assert (ran.code, ran.error["type"]) == (6, "CannotListen")
    assert not (tmp_path / "tasks").exists()


def test_a_damaged_journal_is_not_served(run: Run, damaged: Path) -> None:
    ran = run("tasks", "serve", "--journal", f"disk:{damaged}", "--port", "0", "--json")

    assert (ran.code, ran.error["type"]) == (1, "JournalDamaged")


# Verify and repair


def test_a_whole_journal_is_whole(run: Run, where: Path) -> None:
    before = {path.name: path.read_bytes() for path in where.iterdir()}

    ran = run("tasks", "verify", str(where), "--json")

    assert ran.code == 0
    assert (ran.json["whole"], ran.json["records"], ran.json["tasks"], ran.json["damage"]) == (True, 12, 12, [])
    assert {path.name: path.read_bytes() for path in where.iterdir()} == before


def test_a_directory_without_a_journal_is_whole_and_said_to_have_none(run: Run, tmp_path: Path) -> None:
    ran = run("tasks", "verify", str(tmp_path))

    assert (ran.code, "there is no journal in" in ran.err) == (0, True)
    assert list(tmp_path.iterdir()) == []


def test_the_log_goes_to_stderr(started: Started) -> None:
    with started("tasks", "serve", "--journal", "memory", "--port", "0", "-v") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert re.search(r"^\d{4}-\d\d-\d\d .* INFO uvicorn.error: Started", err, re.MULTILINE)


def test_damage_is_told_with_file_and_place(run: Run, damaged: Path) -> None:
    name = sorted(damaged.glob("*.log"))[1].name

    for_programs, for_people = run("tasks", "verify", str(damaged), "--json"), run("tasks", "verify", str(damaged))

    assert (for_programs.code, for_people.code) == (1, 1)
    assert for_programs.json["whole"] is False
    assert name in for_programs.json["damage"][0]
    assert any(line.startswith("damage: ") and name in line for line in for_people.out.splitlines())


def test_a_repair_says_what_it_drops_and_keeps_a_copy(run: Run, damaged: Path) -> None:
    before = {path.name: path.read_bytes() for path in damaged.iterdir() if path.name != "lock"}

    ran = run("tasks", "repair", str(damaged), "--yes", "--json")

    assert (ran.code, ran.json["repaired"]) == (0, True)
    assert len(ran.json["dropped"]) >= 1
    assert {path.name: path.read_bytes() for path in Path(ran.json["aside"]).iterdir()} == before
    assert run("tasks", "verify", str(damaged)).code == 0
    with TaskStore(f"disk:{damaged}") as store:
        assert 0 < len(store.every_task()) < 12
        assert len(store.every_task()) == ran.json["tasks"]


def test_a_repair_of_a_whole_journal_does_nothing(run: Run, where: Path) -> None:
    before = {path.name: path.read_bytes() for path in where.iterdir()}

    ran = run("tasks", "repair", str(where), "--json")

    assert (ran.code, ran.json["repaired"], ran.json["aside"]) == (0, False, None)
    assert run("tasks", "repair", str(where)).out == "nothing is damaged, and nothing was changed\n"
    assert {path.name: path.read_bytes() for path in where.iterdir()} == before


def test_a_repair_asks_first(run: Run, damaged: Path) -> None:
    before = {path.name: path.read_bytes() for path in damaged.iterdir()}

    ran = run("tasks", "repair", str(damaged), "--json")

    assert (ran.code, "--yes" in ran.error["message"]) == (2, True)
    assert {path.name: path.read_bytes() for path in damaged.iterdir()} == before


@pytest.mark.parametrize("verb", ["verify", "repair"])
def test_a_journal_in_use_is_left_alone(run: Run, where: Path, verb: str) -> None:
    with serving(f"disk:{where}"):
        ran = run("tasks", verb, str(where), "--json")

    assert (ran.code, ran.error["type"]) == (3, "JournalLocked")


@pytest.mark.parametrize("verb", ["verify", "repair"])
def test_what_is_no_directory_is_told(run: Run, tmp_path: Path, verb: str) -> None:
    ran = run("tasks", verb, str(tmp_path / "nowhere"), "--json")

    assert (ran.code, "does not exist" in ran.error["message"]) == (2, True)


def test_fields_are_those_of_the_page(run: Run, damaged: Path) -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text(encoding="utf-8")
    for verb in ("verify", "repair"):
        line = next(line for line in page.splitlines() if line.startswith(f"| `{verb}` |"))

        told = run("tasks", verb, str(damaged), "--json", *(("--yes",) if verb == "repair" else ()))

        assert set(json.loads(told.out)) == {part.split("`")[0] for part in line.split("|")[2].split("`")[1::2]}

"""`slotkeeper semaphore` on an embedded store: what each command answers, to people and to programs."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from commandline import PATIENCE_S, Ran, Run

from slotkeeper import Client, database, schema
from slotkeeper.database import Batch, SettingsError, Value, update
from slotkeeper.semaphore.rows import TOKENS, token_key

ANN, BOB, EVE = "3:ann:run-1:1", "3:bob:run-1:2", "3:eve:run-1:3"


@pytest.fixture
def semaphore(run: Run, embedded: str) -> Run:
    """`slotkeeper semaphore` on one store, which has `gpu` with two slots."""

    def command(*args: str, stdin: str = "") -> Ran:
        return run("semaphore", *args, "--database", embedded, stdin=stdin)

    assert command("create", "gpu", "--size", "2").code == 0
    return command


def test_create_tells_what_was_made(semaphore: Run) -> None:
    ran = semaphore("create", "big", "--size", "101", "--json")

    assert ran.json["created_ms"] > 0
    assert {name: ran.json[name] for name in ("name", "size", "bucket_size", "buckets")} == {
        "name": "big",
        "size": 101,
        "bucket_size": 51,
        "buckets": 2,
    }
    assert set(ran.json) == {"name", "domain_id", "size", "bucket_size", "buckets", "created_ms"}
    assert semaphore("create", "odd", "--size", "10", "--bucket-size", "4").out == "odd: 10 slots in 3 buckets of 4\n"


def test_an_equal_semaphore_is_fine_and_another_one_is_not(semaphore: Run) -> None:
    assert semaphore("create", "gpu", "--size", "2").code == 0

    ran = semaphore("create", "gpu", "--size", "3")
    assert (ran.code, ran.out) == (1, "")
    assert "exists with size 2" in ran.err


@pytest.mark.parametrize(
    "args",
    [("gpu", "--size", "0"), ("gpu", "--size", "2", "--bucket-size", "251"), ("", "--size", "2"), ("gpu",)],
    ids=" ".join,
)
def test_what_no_semaphore_can_be_is_a_usage_error(semaphore: Run, args: tuple[str, ...]) -> None:
    assert semaphore("create", *args).code == 2


def test_three_owners_and_two_slots(semaphore: Run) -> None:
    first = semaphore("acquire", "gpu", "--owner", ANN, "--json")
    second = semaphore("acquire", "gpu", "--workflow", "bob", "--run", "run-1", "--hold", "2", "--json")
    third = semaphore("acquire", "gpu", "--owner", EVE)

    assert set(first.json) == {"semaphore", "owner", "token", "fence", "again", "lease_s"}
    assert (first.json["owner"], second.json["owner"]) == (ANN, BOB)
    assert {first.json["token"], second.json["token"]} == {1, 2}
    assert (third.code, third.out, third.err) == (3, "", "slotkeeper: no slot is free: 2 of 2 held\n")

    assert semaphore("release", "gpu", "--owner", ANN).out == "released gpu\n"
    fourth = semaphore("acquire", "gpu", "--owner", EVE, "--json").json
    assert fourth["token"] == first.json["token"]
    assert fourth["fence"] > first.json["fence"]


def test_an_owner_gets_its_own_slot_again_and_is_told_so(semaphore: Run) -> None:
    first = semaphore("acquire", "gpu", "--owner", ANN, "--json").json
    again = semaphore("acquire", "gpu", "--owner", ANN, "--json").json

    assert (first["again"], again["again"]) == (False, True)
    assert (again["token"], again["fence"]) == (first["token"], first["fence"])
    assert semaphore("acquire", "gpu", "--owner", ANN).err == "slotkeeper: the owner held it already\n"


def test_a_full_bucket_says_that_others_have_room(semaphore: Run) -> None:
    semaphore("create", "split", "--size", "2", "--bucket-size", "1")
    ran = [semaphore("acquire", "split", "--owner", f"1:w:r:{n}") for n in range(12)]

    full = [each.err for each in ran if each.code == 3]
    assert full
    assert all("1 of 1 held in the owner's bucket" in text and "held, in all" not in text for text in full)


def test_refusals_and_errors_are_documents_too(semaphore: Run) -> None:
    for owner in (ANN, BOB):
        semaphore("acquire", "gpu", "--owner", owner)

    ran = semaphore("acquire", "gpu", "--owner", EVE, "--json")

    assert ran.out == ""
    assert ran.error == {"type": "NotAcquired", "message": "no slot is free: 2 of 2 held", "exit_code": 3}


def test_a_release_of_nothing_is_lost_and_changes_nothing(semaphore: Run) -> None:
    semaphore("acquire", "gpu", "--owner", ANN)

    ran = semaphore("release", "gpu", "--owner", BOB, "--json")

    assert (ran.code, ran.out, ran.error["type"]) == (4, "", "NotHeld")
    assert semaphore("holders", "gpu", "--json").json["held"] == 1


def test_a_release_can_name_the_hold_that_it_means(semaphore: Run) -> None:
    fence = semaphore("acquire", "gpu", "--owner", ANN, "--json").json["fence"]

    stale = semaphore("release", "gpu", "--owner", ANN, "--fence", str(fence - 1), "--json")
    assert (stale.code, stale.error["type"]) == (4, "StaleFence")

    right = semaphore("release", "gpu", "--owner", ANN, "--fence", str(fence), "--json")
    assert right.json == {"semaphore": "gpu", "owner": ANN, "released": True}


def test_holders_are_a_table_for_people_and_a_document_for_programs(semaphore: Run) -> None:
    assert semaphore("holders", "gpu").out == "0 of 2 held\n"
    hold = semaphore("acquire", "gpu", "--owner", ANN, "--json").json

    told = semaphore("holders", "gpu", "--json").json
    (holder,) = told.pop("holders")
    assert told == {"semaphore": "gpu", "size": 2, "held": 1}
    assert holder.pop("since_ms") == hold["fence"]
    assert holder == {
        "token": hold["token"],
        "owner": ANN,
        "workflow_id": "ann",
        "run_id": "run-1",
        "hold_id": 1,
        "fence": hold["fence"],
        "bucket": 0,
        "lease_left_s": None,
    }

    first, header, row = semaphore("holders", "gpu").out.splitlines()
    assert first == "1 of 2 held"
    assert header.split() == ["token", "workflow", "run", "hold", "fence", "since", "lease", "left"]
    assert not {line[-1] for line in (header, row)} & {" "}
    assert row.split()[:5] == [str(hold["token"]), "ann", "run-1", "1", str(hold["fence"])]


def test_a_holder_that_is_no_owner_is_shown_as_it_is(semaphore: Run, embedded: str) -> None:
    """Another program wrote the row, with characters that would steer a terminal."""
    with Client(embedded) as client:
        partition = client.describe("gpu").bucket(0).partition
    store = database.open_store(embedded)
    strange = update((*token_key(1),), {"holder": "no owner\x1b[2J\n", "updated_time": 5}, expect={"holder": (None,)})
    store.commit(Batch(TOKENS, partition, (strange,)))
    store.close()

    assert semaphore("holders", "gpu", "--json").json["holders"][0]["workflow_id"] is None
    shown = semaphore("holders", "gpu").out
    assert "no owner\\x1b[2J\\n" in shown
    assert "\x1b" not in shown


def test_list_pages_through_a_domain(semaphore: Run) -> None:
    for name in ("a", "z"):
        semaphore("create", name, "--size", "1")

    def names(*args: str) -> tuple[list[str], Any]:
        found = semaphore("list", *args, "--json").json
        assert set(found) == {"semaphores", "next_after"}
        return [each["name"] for each in found["semaphores"]], found["next_after"]

    assert names() == (["a", "gpu", "z"], None)
    assert names("--limit", "2") == (["a", "gpu"], "gpu")
    assert names("--limit", "2", "--after", "gpu") == (["z"], None)
    assert names("--limit", "3") == (["a", "gpu", "z"], None)
    assert "there are more: --after a" in semaphore("list", "--limit", "1").err
    assert [line.split()[0] for line in semaphore("list").out.splitlines()] == ["name", "a", "gpu", "z"]


def test_domains_are_apart_and_named_by_name_or_uuid(semaphore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = semaphore("create", "gpu", "--size", "7", "--domain", "other", "--json").json

    assert semaphore("describe", "gpu", "--domain", made["domain_id"], "--json").json == made
    assert semaphore("describe", "gpu", "--json").json["size"] == 2
    monkeypatch.setenv("SLOTKEEPER_DOMAIN", "other")
    assert semaphore("describe", "gpu", "--json").json["size"] == 7


def test_describe_shows_all_there_is(semaphore: Run) -> None:
    shown = dict(line.split(None, 1) for line in semaphore("describe", "gpu").out.splitlines())

    assert (shown["name"], shown["size"], shown["buckets"]) == ("gpu", "2", "1")


@pytest.mark.parametrize("command", ["describe", "holders", "acquire", "release", "delete"])
def test_a_semaphore_that_is_not_there_is_one_line(semaphore: Run, command: str) -> None:
    owner = ("--owner", ANN) if command in ("acquire", "release") else ()

    ran = semaphore(command, "tpu", *owner, *(["--yes"] if command == "delete" else []))

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("slotkeeper: Semaphore 'tpu': There is no semaphore of this name")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "owner",
    [
        (),
        ("--owner", ANN, "--hold", "1"),
        ("--workflow", "w", "--run", "r"),
        ("--owner", "nobody"),
        ("--owner", "0::30000000-0000-f000-f000-000000000000:-2"),
        ("--workflow", "w", "--run", "r", "--hold", "seven"),
    ],
    ids=" ".join,
)
def test_who_asks_is_named_once_and_rightly(semaphore: Run, owner: tuple[str, ...]) -> None:
    ran = semaphore("acquire", "gpu", *owner)

    assert (ran.code, ran.out) == (2, "")
    assert semaphore("holders", "gpu", "--json").json["held"] == 0


def test_a_semaphore_with_holders_is_deleted_by_force_only(semaphore: Run) -> None:
    semaphore("acquire", "gpu", "--owner", ANN)

    refused = semaphore("delete", "gpu", "--yes", "--json")
    assert (refused.code, refused.error["type"]) == (1, "SemaphoreHeld")

    assert semaphore("delete", "gpu", "--yes", "--force", "--json").json == {"semaphore": "gpu", "deleted": True}
    assert semaphore("describe", "gpu").code == 1


def test_where_nobody_can_be_asked_delete_wants_a_yes(semaphore: Run) -> None:
    ran = semaphore("delete", "gpu", stdin="y\n")

    assert ran.code == 2
    assert "--yes" in ran.err
    assert semaphore("describe", "gpu").code == 0


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 1), ("n\n", 1, 0)])
def test_on_a_terminal_delete_asks(
    semaphore: Run,
    embedded: str,
    started: Callable[..., subprocess.Popen[str]],
    answer: str,
    code: int,
    left: int,
) -> None:
    ours, theirs = pty.openpty()
    with started("semaphore", "delete", "gpu", "--database", embedded, stdin=theirs) as process:
        os.close(theirs)
        os.write(ours, answer.encode())
        out, err = process.communicate(timeout=PATIENCE_S)
    os.close(ours)

    assert process.returncode == code
    assert "Delete semaphore gpu?" in err
    assert out == ("deleted gpu\n" if code == 0 else "")
    assert semaphore("describe", "gpu").code == left


def test_a_name_that_the_terminal_cannot_spell_is_spelled_out(semaphore: Run, run_process: Run, embedded: str) -> None:
    semaphore("create", "名", "--size", "1")

    poor = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    ran = run_process("semaphore", "describe", "名", "--database", embedded, env=poor)
    assert (ran.code, ran.out.splitlines()[0].split()[1]) == (0, "\\u540d")
    assert run_process("semaphore", "describe", "名", "--database", embedded, "--json", env=poor).json["name"] == "名"


def test_a_schema_that_is_too_new_is_refused_at_start(run: Run, embedded: str) -> None:
    store = database.open_store(embedded)
    schema.setup(store)
    newer: dict[str, Value] = {"value": "9.9", "updated_time": 1}
    writes = (
        update(("version", "current"), newer, expect={"value": ("0.3",)}),
        update(("version", "min_compatible"), newer),
    )
    store.commit(Batch(schema.CONTROL, schema.PARTITION, writes))
    store.close()

    ran = run("semaphore", "list", "--database", embedded, "--json")

    assert (ran.code, ran.error["type"]) == (5, "SchemaTooNew")
    assert run("schema", "status", "--database", embedded, "--json").json["state"] == "too new"
    assert run("schema", "status", "--database", embedded).code == 5
    assert run("schema", "setup", "--database", embedded).code == 5
    assert run("doctor", "--database", embedded).code == 5


def test_settings_are_checked_before_anything_is_opened(run: Run) -> None:
    ran = run("semaphore", "list", "--database", "mysql://localhost/slots", "--json")

    assert (ran.code, ran.error["type"]) == (2, SettingsError.__name__)

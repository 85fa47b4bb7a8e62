"""`slotkeeper owner`: the vectors of the codec, through the command."""

from __future__ import annotations

import pytest
from commandline import Run

SPELLED = "8:order:42:run-1:7"
FREE = "0::30000000-0000-f000-f000-000000000000:-2"


def test_encode_spells_the_owner(run: Run) -> None:
    ran = run("owner", "encode", "--workflow", "order:42", "--run", "run-1", "--hold", "7")

    assert (ran.code, ran.out, ran.err) == (0, f"{SPELLED}\n", "")


def test_a_negative_hold_and_empty_names_are_owners_too(run: Run) -> None:
    ran = run("owner", "encode", "--workflow", "", "--run", "", "--hold", "-9223372036854775808")

    assert ran.out == "0:::-9223372036854775808\n"


def test_decode_takes_it_apart(run: Run) -> None:
    ran = run("owner", "decode", SPELLED, "--json")

    assert ran.json == {
        "owner": SPELLED,
        "workflow_id": "order:42",
        "run_id": "run-1",
        "hold_id": 7,
        "reserved": False,
    }
    assert "order:42" in run("owner", "decode", SPELLED).out


def test_decode_says_whether_an_owner_is_reserved(run: Run) -> None:
    assert run("owner", "decode", FREE, "--json").json["reserved"] is True


@pytest.mark.parametrize(
    ("args", "bucket", "buckets"),
    [
        (("--buckets", "4"), 1, 4),
        (("--buckets", "1"), 0, 1),
        (("--size", "101"), None, 2),
        (("--size", "101", "--bucket-size", "10"), None, 11),
    ],
)
def test_bucket_tells_where_an_owner_goes(run: Run, args: tuple[str, ...], bucket: int | None, buckets: int) -> None:
    found = run("owner", "bucket", SPELLED, *args, "--json").json

    assert found["owner"] == SPELLED
    assert found["buckets"] == buckets
    assert bucket is None or found["bucket"] == bucket
    assert run("owner", "bucket", SPELLED, *args).out == f"{found['bucket']}\n"


@pytest.mark.parametrize(
    "args",
    [
        ("decode", "007"),
        ("decode", "2:ä:r:1:"),
        ("bucket", SPELLED),
        ("bucket", SPELLED, "--buckets", "4", "--size", "4"),
        ("bucket", SPELLED, "--buckets", "4", "--bucket-size", "4"),
        ("bucket", SPELLED, "--buckets", "0"),
        ("bucket", SPELLED, "--size", "0"),
        ("bucket", "nobody", "--buckets", "4"),
        ("encode", "--workflow", "w", "--run", "r", "--hold", "007"),
        ("encode", "--workflow", "w", "--run", "r", "--hold", "1_0"),
        ("encode", "--workflow", "w", "--run", "r", "--hold", "9223372036854775808"),
        ("encode", "--workflow", "w", "--run", "r"),
    ],
    ids=" ".join,
)
def test_what_is_no_owner_or_no_question_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    ran = run("owner", *args)

    assert ran.code == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_a_bad_owner_id_says_where_it_is_wrong(run: Run) -> None:
    assert run("owner", "decode", "007").err == "slotkeeper: owner id '007' is wrong at byte 3: no separator\n"

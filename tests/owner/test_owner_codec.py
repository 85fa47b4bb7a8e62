"""One spelling an owner, and one owner a spelling."""

from __future__ import annotations

import contextlib
import enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotkeeper import SlotkeeperError
from slotkeeper.owner import Owner, OwnerFieldError, OwnerIdError

MOST = 2**63 - 1
LEAST = -(2**63)

CHARACTERS = st.characters(codec="utf-8")
HARD = "abz:0123456789-+_ \t\u00a0\u0661\u0967\uff11\u00b2é日🙂\x00"

texts = st.text(CHARACTERS) | st.text(HARD)
hold_ids = st.integers(LEAST, MOST)
owners = st.builds(Owner, texts, texts, hold_ids)
hard_texts = st.text(":0123456789-+abz") | st.text(HARD)
near_owner_ids = st.builds(
    lambda length, rest, number: f"{length}:{rest}:{number}",
    st.integers(0, 12) | st.text(HARD, max_size=3),
    st.text(HARD, max_size=12),
    hold_ids | st.text(HARD, max_size=4),
)


@settings(deadline=None)
@given(owners)
def test_any_owner_is_read_back_from_its_spelling(owner: Owner) -> None:
    assert Owner.parse(str(owner)) == owner


@settings(deadline=None, max_examples=1000)
@given(hard_texts | near_owner_ids | texts)
def test_any_text_that_is_read_is_spelled_again_byte_for_byte(text: str) -> None:
    with contextlib.suppress(OwnerIdError):
        assert str(Owner.parse(text)) == text


@settings(deadline=None)
@given(hard_texts | near_owner_ids)
def test_any_refusal_points_into_the_text(text: str) -> None:
    try:
        Owner.parse(text)
    except OwnerIdError as error:
        refused = error
    else:
        return

    assert 0 <= refused.position <= len(text.encode())


@settings(deadline=None)
@given(owners, owners)
def test_owners_are_spelled_alike_only_if_they_are_equal(one: Owner, other: Owner) -> None:
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("2:wf:run-1:007", 11, "leading zeros in the hold id"),
        ("2:wf:run-1:-007", 12, "leading zeros in the hold id"),
        ("2:wf:run-1:-0", 11, "non-canonical hold id"),
        ("2:wf:run-1:-", 11, "hold id is not a number"),
        ("2:wf:run-1:--1", 12, "hold id is not a number"),
        ("2:wf:run-1:12a", 13, "hold id is not a number"),
        ("2:wf:run-1:+1", 11, "plus sign in the hold id"),
        ("2:wf:run-1:1\n", 12, "space in the hold id"),
        ("2:wf:run-1:1\u00b2", 12, "non-ASCII digit in the hold id"),
        ("2:é:ラン:1_0", 13, "underscore in the hold id"),
        ("2:wf:run-1:" + "9" * 5000, 11, "hold id overflows int64"),
        ("9" * 5000 + ":wf:run-1:1", 0, "length past the end"),
        (":wf:run-1:1", 0, "empty length"),
        ("-0::run-1:1", 0, "negative length"),
        ("00::run-1:1", 0, "leading zeros in the length"),
        ("2x:wf:run-1:1", 1, "length is not a number"),
        ("nonsense", 8, "no separator"),
        ("3:wf", 0, "length past the end"),
        ("2:wf", 4, "no separator after the workflow id"),
        ("2:wf:run-1", 10, "no hold id"),
        ("1:é:run-1:1", 3, "length cuts a character in two"),
        ("1:\u00e9", 3, "length cuts a character in two"),
        ("1:é:\ud800:1", 5, "lone surrogate"),
    ],
)
def test_a_refusal_says_where_and_why(text: str, position: int, reason: str) -> None:
    with pytest.raises(OwnerIdError) as refused:
        Owner.parse(text)

    assert (refused.value.position, refused.value.reason) == (position, reason)
    assert str(refused.value).endswith(f" is wrong at byte {position}: {reason}")


def test_a_refusal_shows_a_short_text_whole_and_a_long_one_shortened() -> None:
    with pytest.raises(OwnerIdError, match=r"^owner id '2:wf:run-1:007' is wrong at byte 11: leading zeros in"):
        Owner.parse("2:wf:run-1:007")
    with pytest.raises(OwnerIdError, match=r"^owner id 'x{200}'\.\.\. is wrong at byte 1000000: no separator$"):
        Owner.parse("x" * 1_000_000)


@pytest.mark.parametrize("hold_id", [LEAST - 1, MOST + 1, 10**5000], ids=["least - 1", "most + 1", "huge"])
def test_a_hold_id_past_64_bits_is_refused(hold_id: int) -> None:
    with pytest.raises(OwnerFieldError, match="hold_id of an owner overflows int64") as refused:
        Owner("wf", "run-1", hold_id)

    assert (refused.value.field, refused.value.value) == ("hold_id", hold_id)


@pytest.mark.parametrize("field", ["workflow_id", "run_id"])
def test_a_text_that_utf_8_cannot_encode_is_refused(field: str) -> None:
    fields = {"workflow_id": "wf", "run_id": "run-1", field: "ab\udc80"}

    with pytest.raises(OwnerFieldError, match=f"{field} of an owner has a lone surrogate at character 2"):
        Owner(**fields, hold_id=7)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((b"wf", "run-1", 7), "workflow_id of an owner is a str, not bytes"),
        (("wf", None, 7), "run_id of an owner is a str, not NoneType"),
        (("wf", "run-1", True), "hold_id of an owner is an int, not bool"),
        (("wf", "run-1", 7.0), "hold_id of an owner is an int, not float"),
        (("wf", "run-1", "7"), "hold_id of an owner is an int, not str"),
    ],
)
def test_a_field_of_another_type_is_refused(fields: tuple[str, str, int], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Owner(*fields)


def test_only_a_str_is_read() -> None:
    with pytest.raises(TypeError, match="an owner_id is a str, not bytes"):
        Owner.parse(b"2:wf:run-1:7")  # type: ignore[arg-type]


def test_an_enumerated_workflow_is_spelled_by_its_value() -> None:
    class Workflow(str, enum.Enum):  # noqa: UP042 - a StrEnum formats as its value anyway
        ORDERS = "orders"

    assert str(Owner(Workflow.ORDERS, "run-1", 7)) == "6:orders:run-1:7"


def test_one_except_catches_whatever_slotkeeper_refuses() -> None:
    assert issubclass(OwnerIdError, SlotkeeperError)
    assert issubclass(OwnerIdError, ValueError)
    assert issubclass(OwnerFieldError, SlotkeeperError)
    assert issubclass(OwnerFieldError, ValueError)

"""The one spelling of an owner: `<byte length of workflow_id>:<workflow_id>:<run_id>:<hold_id>`.

Cassandra compares text byte by byte, so two spellings of one owner would be two owners. Numbers are therefore read
strictly: `int()` alone would also take `007`, `+7`, `1_0`, ` 7` and the digits of every script.
"""

from __future__ import annotations

from typing import NoReturn

from .errors import OwnerIdError

INT64 = range(-(2**63), 2**63)
INT64_DIGITS = 19


def spell(workflow_id: str, run_id: str, hold_id: int) -> str:
    """Return the owner_id of these three fields. They are taken as they are: `Owner` has checked them."""
    length = len(workflow_id.encode())
    # join, not an f-string: a str that is also an Enum formats as its name and joins as its value.
    return ":".join((str(length), workflow_id, run_id, f"{hold_id:d}"))


def take_apart(owner_id: str) -> tuple[str, str, int]:
    """Return workflow id, run id and hold id; raise OwnerIdError where `owner_id` is not an owner's one spelling."""
    encoded = utf8(owner_id)
    digits, colon, rest = encoded.partition(b":")
    if not colon:
        raise OwnerIdError(owner_id, len(encoded), "no separator")
    start = len(digits) + 1
    end = start + _length(owner_id, digits.decode(), len(rest))
    if encoded[end : end + 1] != b":":
        _refuse_end(owner_id, encoded, end)
    run_id, hold_id = _run_and_hold(owner_id, encoded, end + 1)
    return encoded[start:end].decode(), run_id, hold_id


def utf8(owner_id: str) -> bytes:
    """Return the bytes of `owner_id`; raise OwnerIdError where it has none: half a surrogate pair is no character."""
    try:
        return owner_id.encode()
    except UnicodeEncodeError as error:
        position = len(owner_id[: error.start].encode())
        raise OwnerIdError(owner_id, position, "lone surrogate") from error


def _length(owner_id: str, digits: str, available: int) -> int:
    if digits.startswith("-"):
        raise OwnerIdError(owner_id, 0, "negative length")
    _refuse_other_spellings(owner_id, digits, 0, "length")
    # Digits are counted first: int() refuses thousands of them with an error of its own.
    if len(digits) > len(str(available)) or int(digits) > available:
        raise OwnerIdError(owner_id, 0, "length past the end")
    return int(digits)


def _refuse_end(owner_id: str, encoded: bytes, end: int) -> NoReturn:
    inside_a_character = encoded[end : end + 1] and encoded[end] & 0xC0 == 0x80
    reason = "length cuts a character in two" if inside_a_character else "no separator after the workflow id"
    raise OwnerIdError(owner_id, end, reason)


def _run_and_hold(owner_id: str, encoded: bytes, start: int) -> tuple[str, int]:
    colon = encoded.rfind(b":", start)
    if colon < 0:
        raise OwnerIdError(owner_id, len(encoded), "no hold id")
    hold_id = _hold_id(owner_id, encoded[colon + 1 :].decode(), colon + 1)
    return encoded[start:colon].decode(), hold_id


def _hold_id(owner_id: str, number: str, position: int) -> int:
    digits = number.removeprefix("-")
    if number == "-":
        raise OwnerIdError(owner_id, position, "hold id is not a number")
    if number == "-0":
        raise OwnerIdError(owner_id, position, "non-canonical hold id")
    _refuse_other_spellings(owner_id, digits, position + len(number) - len(digits), "hold id")
    if len(digits) > INT64_DIGITS or int(number) not in INT64:
        raise OwnerIdError(owner_id, position, "hold id overflows int64")
    return int(number)


def _refuse_other_spellings(owner_id: str, digits: str, position: int, noun: str) -> None:
    if not digits:
        raise OwnerIdError(owner_id, position, f"empty {noun}")
    for place, character in enumerate(digits):
        if character not in "0123456789":
            raise OwnerIdError(owner_id, position + place, _why_no_digit(character, noun))
    if digits[0] == "0" and digits != "0":
        raise OwnerIdError(owner_id, position, f"leading zeros in the {noun}")


def _why_no_digit(character: str, noun: str) -> str:
    if character.isspace():
        return f"space in the {noun}"
    if character.isdigit():
        return f"non-ASCII digit in the {noun}"
    sign = {"+": "plus sign", "_": "underscore"}.get(character)
    return f"{sign} in the {noun}" if sign else f"{noun} is not a number"

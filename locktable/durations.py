"""Durations as Go spells them: `30s`, `1m30s`, `29.9s`, `500ms`."""

from __future__ import annotations

import re

from .errors import BadLockRequest

UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
LONGEST = 64  # characters: no number that anybody means is longer
MOST_S = float(2**63 // 10**9)  # what Go can count


def parse_duration(text: str) -> float:
    """Return the seconds that a text means; none where it is empty. Raises BadLockRequest."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if text == "" or rest == "0":
        return 0.0
    parts = PART.findall(rest) if len(rest) <= LONGEST else []
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise BadLockRequest(f"{text[:LONGEST]!r} is no duration. One is spelled 30s, 1m30s or 500ms.")
    seconds = sum(float(number) * UNITS_S[unit] for number, unit in parts)
    if seconds > MOST_S:
        raise BadLockRequest(f"{text[:LONGEST]!r} is a longer duration than can be counted.")
    return sign * seconds


def duration(seconds: float) -> str:
    """Spell seconds, to the nanosecond, as Go does."""
    nanoseconds = round(seconds * 1e9)
    sign, nanoseconds = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if nanoseconds < 1_000_000_000:
        return sign + _below_a_second(nanoseconds)
    minutes, left = divmod(nanoseconds, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    spelled = f"{_decimal(left, 9)}s"
    if hours or minutes:
        spelled = f"{minutes}m{spelled}"
    return sign + (f"{hours}h{spelled}" if hours else spelled)


def _below_a_second(nanoseconds: int) -> str:
    if nanoseconds >= 1_000_000:
        return f"{_decimal(nanoseconds, 6)}ms"
    if nanoseconds >= 1_000:
        return f"{_decimal(nanoseconds, 3)}µs"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def _decimal(number: int, places: int) -> str:
    whole, fraction = divmod(number, 10**places)
    return f"{whole}.{fraction:0{places}}".rstrip("0").rstrip(".") if fraction else str(whole)

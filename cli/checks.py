"""What the doctor looks at, on any store: each check is one line that says what is, and what to do about it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import SlotkeeperError
from .exits import Exit, code_of

if TYPE_CHECKING:
    from ..database import Store, Value

OK, WARN, FAIL = "ok", "warn", "fail"
SLOW_MS = 250.0
ATTEMPTS = 5  # another doctor may be at the scratch row at the same moment


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `fix` says what to do, `exit_code` how the doctor ends for a failed one."""

    name: str
    status: str
    message: str
    fix: str = ""
    exit_code: Exit = Exit.DONE


ENDS = ("file", "schema")
Findings = Iterable[Check]
Step = tuple[str, Callable[[], Findings]]


def ok(name: str, message: str) -> Check:
    """Return a finding that needs nothing."""
    return Check(name, OK, message)


def warn(name: str, message: str, fix: str) -> Check:
    """Return a finding that somebody should look after."""
    return Check(name, WARN, message, fix)


def fail(name: str, message: str, fix: str, code: Exit) -> Check:
    """Return a finding with which slotkeeper does not work."""
    return Check(name, FAIL, message, fix, code)


def examined(steps: Iterable[Step]) -> Iterator[Check]:
    """Yield the findings of each step. An error is a finding too, and some failures leave nothing to look at behind them."""
    for name, look in steps:
        failed = False
        for check in _found(name, look):
            failed = failed or check.status == FAIL
            yield check
        if failed and name in ENDS:
            return


def _found(name: str, look: Callable[[], Findings]) -> Iterator[Check]:
    try:
        yield from look()
    except (SlotkeeperError, OSError) as error:
        yield Check(name, FAIL, str(error), exit_code=code_of(type(error)))


def schema_checks(store: Store) -> Iterator[Check]:
    """Check the version of the schema, and who is changing it."""
    from ..schema import status

    found = status(store)
    versions = f"installed {found.installed or 'none'}, expected {found.expected}"
    match found.state:
        case "current" | "newer":
            yield ok("schema", f"{found.state}: {versions}")
        case "missing" | "older":
            verb = "setup" if found.state == "missing" else "update"
            yield fail("schema", f"{found.state}: {versions}", f"run `slotkeeper schema {verb}`", Exit.SCHEMA)
        case state:
            yield fail("schema", f"{state}: {versions}", "update this program", Exit.SCHEMA)
    if found.locked_by:
        fix = "wait for it; if it is dead, `slotkeeper schema setup --force-unlock`"
        yield warn("schema lock", f"held by {found.locked_by}", fix)


def consistency_check(store: Store) -> Iterator[Check]:
    """Compare the pair of levels that the keyspace is kept at with the configured one."""
    from ..schema import status

    if (ours := store.consistency) is None:
        return
    stored, configured = status(store).consistency, f"{ours.value}/{ours.serial}"
    if stored in (None, configured):
        yield ok("consistency", f"{configured}{'' if stored else ', none stored yet'}")
    else:
        fix = (
            f"set --consistency {stored.partition('/')[0]} (SLOTKEEPER_CONSISTENCY): quorums of two pairs need not meet"
        )
        yield fail("consistency", f"stored {stored}, configured {configured}", fix, Exit.SCHEMA)


def round_trip(store: Store) -> Iterator[Check]:
    """Change the scratch row twice, as slots are changed: the first time statements are prepared, the second is timed."""
    _changed_ms(store)
    took_ms = _changed_ms(store)
    message = f"one guarded write on the scratch row took {took_ms:.1f} ms"
    if took_ms <= SLOW_MS:
        yield ok("round trip", message)
    else:
        yield warn("round trip", message, "look at the nodes' load, and at the way between them and this host")


def _changed_ms(store: Store) -> float:
    from ..database import Applied, Batch, Slice, Unavailable, Unknown, update
    from ..schema import CONTROL, DOCTOR, PARTITION

    for _ in range(ATTEMPTS):
        rows = store.read(CONTROL, PARTITION, (Slice(DOCTOR),), serial=True)
        seen = rows[0]["value"] if rows else None
        value: dict[str, Value] = {"value": secrets.token_hex(4), "updated_time": time.time_ns() // 1_000_000}
        began = time.perf_counter()
        match store.commit(Batch(CONTROL, PARTITION, (update(DOCTOR, value, expect={"value": (seen,)}),))):
            case Applied():
                return (time.perf_counter() - began) * 1000
            case Unknown(cause):
                raise Unavailable(f"The database did not say whether a write took effect: {cause}.") from cause
    raise Unavailable("The scratch row was changed by others at each attempt. Try again.")

"""How a command ends: one exit code for each error, one line, no traceback, no secret."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from click.exceptions import Exit as ClickExit
from commandline import PATIENCE_S, Run

import slotkeeper.locktable
import slotkeeper.locktable.node.errors
import slotkeeper.locktable.remote
import slotkeeper.owner
import slotkeeper.schema
import slotkeeper.semaphore
import slotkeeper.taskstore
import slotkeeper.taskstore.remote
import slotkeeper.web.failures
import slotkeeper.web.reading
import slotkeeper.web.serving
import slotkeeper.web.tokens
from slotkeeper import Client, SlotkeeperError
from slotkeeper.cli.child import CommandNotExecutable, CommandNotFound
from slotkeeper.cli.exits import CODES, Exit, NotHeld, NothingToClaim, code_of
from slotkeeper.database import errors as database_errors
from slotkeeper.database.errors import Unavailable

EXPECTED = {
    2: "BadAddress BadCertificate BadJournal BadToken BadTokenFile BadTrust BadWorker TokenNeeded"
    " BadLockRequest NoName"
    " SettingsError BadLease BadName BadSize OwnerIdError OwnerTooLong ReservedOwner OwnerFieldError NoBucket",
    3: "JournalLocked LockHeld NotAcquired TakenOver WaitCancelled SchemaLocked",
    4: "AlreadyReleased ClaimLost Fenced LockLost UpdateError NotHeld LeaseLost StaleFence SchemaLockLost",
    5: "SchemaError VersionError SchemaMissing SchemaTooOld SchemaTooNew UnknownVersion ConsistencyMismatch"
    " SchemaConflict KeyspaceMissing TableMissing",
    6: "Unavailable LoginRefused SchemaNotAgreed StoreFull BeingDeleted"
    " CannotListen JournalFailed JournalFull NotSent StoreBusy"
    " FencesUsedUp GrantLate LimitReached LockAccessDenied LockUnavailable NoCopy NoSpeaker NodeLeaving NotRebuilt"
    " NotTheSpeaker Outdated ServiceUnreachable Unreachable",
    126: "CommandNotExecutable",
    127: "CommandNotFound",
    7: "AnswerLost LockUnknown OutcomeUnknown ChangeUnknown HoldUnknown SchemaUnsettled",
    1: "SlotkeeperError DatabaseError StatementRejected StoreDamaged ClosedError ForkedError"
    " CallError CallerClosed Gone Interrupted JournalDamaged JournalError Problem Quarantine StoreClosed TaskStoreError"
    " SemaphoreError NoSuchSemaphore SemaphoreExists SemaphoreHeld RowsDisagree"
    " BadEpoch BadLockAnswer ForkedLockClient LockClientClosed LockError",
}
REMOTE = {6: "AccessDenied ServiceUnreachable", 3: "NothingToClaim", 1: "BadAnswer ForkedClient Unsendable"}
CODE_OF = {name: code for table in (EXPECTED, REMOTE) for code, names in table.items() for name in names.split()}
MODULES = (
    slotkeeper.locktable,
    slotkeeper.locktable.node.errors,
    slotkeeper.locktable.remote,
    slotkeeper.owner,
    slotkeeper.schema,
    slotkeeper.semaphore,
    slotkeeper.taskstore,
    slotkeeper.taskstore.remote,
    slotkeeper.web.failures,
    slotkeeper.web.reading,
    slotkeeper.web.serving,
    slotkeeper.web.tokens,
    database_errors,
)


def errors() -> Iterator[type[SlotkeeperError]]:
    """Yield every error that a package can raise."""
    found = {value for module in MODULES for value in vars(module).values() if isinstance(value, type)}
    yield from sorted(
        {
            error
            for error in found | {NotHeld, NothingToClaim, CommandNotFound, CommandNotExecutable}
            if issubclass(error, SlotkeeperError)
        },
        key=lambda error: error.__name__,
    )


ALL = list(errors())


def made(error: type[SlotkeeperError]) -> SlotkeeperError:
    """Make an error of any class."""
    found = error.__new__(error)
    found.args = ("it happened\nin two lines",)
    return found


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let `slotkeeper semaphore describe` raise something."""

    def let(error: BaseException) -> None:
        def describe(self: Client, name: str) -> None:
            raise error

        monkeypatch.setattr(Client, "describe", describe)

    return let


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_has_its_code_and_is_one_line(
    error: type[SlotkeeperError], run: Run, embedded: str, raised: Callable[[BaseException], None]
) -> None:
    raised(made(error))

    ran = run("semaphore", "describe", "gpu", "--database", embedded, "-q")

    assert (ran.code, ran.out) == (CODE_OF[error.__name__], "")
    assert ran.err == "slotkeeper: it happened in two lines\n"


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_a_document_for_programs(
    error: type[SlotkeeperError], run: Run, embedded: str, raised: Callable[[BaseException], None]
) -> None:
    raised(made(error))

    ran = run("semaphore", "describe", "gpu", "--database", embedded, "--json")

    code = CODE_OF[error.__name__]
    assert (ran.code, ran.out) == (code, "")
    assert ran.error == {"type": error.__name__, "message": "it happened in two lines", "exit_code": code}


def test_the_table_names_only_what_there_is() -> None:
    assert set(CODES) <= {error.__name__ for error in ALL} | {"SlotkeeperError"}
    assert code_of(KeyError) == Exit.UNEXPECTED


@pytest.mark.parametrize("args", [(), ("--json",)])
def test_what_nobody_foresaw_is_one_line_too(
    args: tuple[str, ...], run: Run, embedded: str, raised: Callable[[BaseException], None]
) -> None:
    raised(KeyError("surprise"))

    ran = run("semaphore", "describe", "gpu", "--database", embedded, "-q", *args)

    assert (ran.code, ran.out) == (1, "")
    assert "KeyError: 'surprise'" in ran.err
    assert "-v shows" in ran.err
    assert "Traceback" not in ran.err


def test_a_traceback_is_for_who_asks_for_it(run: Run, embedded: str, raised: Callable[[BaseException], None]) -> None:
    raised(Unavailable())

    ran = run("semaphore", "describe", "gpu", "--database", embedded, "-v")

    assert ran.code == 6
    assert "Traceback" in ran.err
    assert ran.err.rstrip().splitlines()[-1].startswith("slotkeeper: The database could not be reached")


@pytest.mark.parametrize(
    "args", [("semaphore", "acquire"), ("semaphore", "create", "gpu", "--size", "two"), ("--nothing",)]
)
def test_a_usage_error_is_a_document_for_programs(run: Run, args: tuple[str, ...]) -> None:
    ran = run(*args, "--json")

    assert (ran.code, ran.out, ran.error["exit_code"]) == (2, "", 2)


def test_an_exit_of_clicks_own_keeps_its_code(run: Run, embedded: str, raised: Callable[[BaseException], None]) -> None:
    raised(ClickExit(9))

    assert run("semaphore", "describe", "gpu", "--database", embedded).code == 9


@pytest.mark.parametrize(
    ("method", "args", "hint"),
    [
        ("acquire", ("acquire", "gpu", "--owner", "1:w:r:1"), "semaphore holders gpu"),
        ("release", ("release", "gpu", "--owner", "1:w:r:1"), "semaphore holders gpu"),
        ("create", ("create", "gpu", "--size", "1"), "create it again"),
        ("delete", ("delete", "gpu", "--yes"), "delete it again"),
    ],
)
def test_ctrl_c_during_a_change_says_how_to_find_out(
    run: Run, embedded: str, monkeypatch: pytest.MonkeyPatch, method: str, args: tuple[str, ...], hint: str
) -> None:
    def interrupted(self: Client, *args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, method, interrupted)

    ran = run("semaphore", *args, "--database", embedded)

    assert (ran.code, ran.out) == (130, "")
    assert "interrupted" in ran.err
    assert hint in ran.err


def test_ctrl_c_ends_a_process_with_130_and_without_a_traceback(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    with started("demo", "--seconds", "60") as process:
        assert process.stderr is not None
        assert "jobs done" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, out) == (130, "")
    assert "slotkeeper: interrupted" in err
    assert "Traceback" not in err


def test_a_reader_that_has_gone_is_no_traceback(started: Callable[..., subprocess.Popen[str]]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with started("owner", "encode", "--workflow", "w", "--run", "r", "--hold", "1", stdout=theirs) as process:
        os.close(theirs)
        _, err = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, err) == (1, "")


PASSWORD = "s3cret/with:signs"


@pytest.mark.parametrize("options", [(), ("-v",), ("--json",)])
@pytest.mark.parametrize(
    "url",
    [
        "cassandra://me:{}@127.0.0.1:1/slots",
        "cassandra://me:{}@127.0.0.1:port/slots",
        "cassandra://me:{}@/slots",
        "cassandra://me@127.0.0.1:1/slots?password={}&wrong=1",
        "cassandra://127.0.0.1:1/slots?user=me&password={}&wrong",
        "mysql://me:{}@h/slots",
        "cassandra://me:{}\u2100@127.0.0.1:1/slots",
    ],
)
@pytest.mark.parametrize("spelled", ["s3cret", "s3cret%2Fwith%3Asigns"])
def test_a_password_is_never_printed(run: Run, url: str, options: tuple[str, ...], spelled: str) -> None:
    ran = run("semaphore", "list", "--database", url.format(spelled), *options)

    assert ran.code in (2, 6)
    assert "s3cret" not in ran.out + ran.err


def test_a_password_of_the_environment_is_never_printed(
    run: Run, monkeypatch: pytest.MonkeyPatch, raised: Callable[[BaseException], None], embedded: str
) -> None:
    monkeypatch.setenv("SLOTKEEPER_PASSWORD", PASSWORD)
    raised(RuntimeError(f"somebody put {PASSWORD} into a message"))

    ran = run("semaphore", "describe", "gpu", "--database", embedded, "-v")

    assert ran.code == 1
    assert PASSWORD not in ran.err
    assert "***" in ran.err

"""How a command ends: every error has one line, which says how to go on, and one exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import click

from ..errors import SlotkeeperError
from .options import Choices
from .output import encoded, one_line
from .secrecy import redacted


class Exit(IntEnum):
    """The exit codes. Programs rely on them."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    NOT_ACQUIRED = 3
    LOST = 4
    SCHEMA = 5
    UNAVAILABLE = 6
    UNKNOWN = 7
    NOT_EXECUTABLE = 126
    NO_COMMAND = 127
    INTERRUPTED = 130


class NotHeld(SlotkeeperError):
    """The owner holds nothing, and waits for nothing, that could have been given up. Nothing was changed."""


class NothingToClaim(SlotkeeperError):
    """No task can be claimed now. Wait for one with --wait, or come back later."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a change was on its way; its text says how to find out what became of it."""


# By name, so that a wrong owner id is told without importing a database driver. An error without an entry has its base's.
CODES: Mapping[str, Exit] = {
    # here
    "CommandNotExecutable": Exit.NOT_EXECUTABLE,
    "CommandNotFound": Exit.NO_COMMAND,
    "NotHeld": Exit.LOST,
    "NothingToClaim": Exit.NOT_ACQUIRED,
    "SlotkeeperError": Exit.UNEXPECTED,
    # owner
    "OwnerIdError": Exit.USAGE,
    "OwnerFieldError": Exit.USAGE,
    "NoBucket": Exit.USAGE,
    # database
    "DatabaseError": Exit.UNEXPECTED,
    "SettingsError": Exit.USAGE,
    "Unavailable": Exit.UNAVAILABLE,
    "LoginRefused": Exit.UNAVAILABLE,
    "SchemaNotAgreed": Exit.UNAVAILABLE,
    "StoreFull": Exit.UNAVAILABLE,
    "KeyspaceMissing": Exit.SCHEMA,
    "TableMissing": Exit.SCHEMA,
    # schema
    "SchemaError": Exit.SCHEMA,
    "SchemaLocked": Exit.NOT_ACQUIRED,
    "SchemaLockLost": Exit.LOST,
    "SchemaUnsettled": Exit.UNKNOWN,
    # locktable
    "BadLockRequest": Exit.USAGE,
    "LockHeld": Exit.NOT_ACQUIRED,
    "TakenOver": Exit.NOT_ACQUIRED,
    "AlreadyReleased": Exit.LOST,
    "LockAccessDenied": Exit.UNAVAILABLE,
    "LockLost": Exit.LOST,
    "LockUnavailable": Exit.UNAVAILABLE,
    "LockUnknown": Exit.UNKNOWN,
    # semaphore
    "SemaphoreError": Exit.UNEXPECTED,
    "BadLease": Exit.USAGE,
    "BadName": Exit.USAGE,
    "BadSize": Exit.USAGE,
    "BeingDeleted": Exit.UNAVAILABLE,
    "LeaseLost": Exit.LOST,
    "NotAcquired": Exit.NOT_ACQUIRED,
    "StaleFence": Exit.LOST,
    "WaitCancelled": Exit.NOT_ACQUIRED,
    "OutcomeUnknown": Exit.UNKNOWN,
    # taskstore
    "TaskStoreError": Exit.UNEXPECTED,
    "AccessDenied": Exit.UNAVAILABLE,
    "UpdateError": Exit.LOST,
    "Fenced": Exit.LOST,
    "StoreBusy": Exit.UNAVAILABLE,
    "JournalFailed": Exit.UNAVAILABLE,
    "JournalLocked": Exit.NOT_ACQUIRED,
    "BadJournal": Exit.USAGE,
    "BadWorker": Exit.USAGE,
    "ClaimLost": Exit.LOST,
    # web
    "AnswerLost": Exit.UNKNOWN,
    "BadAddress": Exit.USAGE,
    "BadToken": Exit.USAGE,
    "BadTrust": Exit.USAGE,
    "CallError": Exit.UNEXPECTED,
    "NotSent": Exit.UNAVAILABLE,
    "CannotListen": Exit.UNAVAILABLE,
    "BadCertificate": Exit.USAGE,
    "BadTokenFile": Exit.USAGE,
    "TokenNeeded": Exit.USAGE,
}


def code_of(error: type[BaseException]) -> Exit:
    """Return the exit code of an error: its own entry's, or that of the nearest base which has one."""
    return next((CODES[base.__name__] for base in error.__mro__ if base.__name__ in CODES), Exit.UNEXPECTED)


def end(command: Callable[[], object], choices: Choices) -> NoReturn:
    """Run a command and leave the process with its exit code. What it raises comes out as one line."""
    try:
        result = command()
        sys.stdout.flush()  # here, where a reader that has gone can still be told from a failure
        code = result if isinstance(result, int) else Exit.DONE
    except BrokenPipeError:
        code = _reader_gone()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except Exception as error:
        code = _report(error, choices)
    sys.exit(int(code))


@contextmanager
def unsettled(hint: str) -> Iterator[None]:
    """Say how to find out what became of a change that Ctrl-C cut off."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(hint) from error


def _report(error: Exception, choices: Choices) -> int:
    code, kind, message = _told(error)
    if choices.verbose:
        _print_traceback(error, choices)
    if choices.json:
        told = {"error": {"type": kind, "message": redacted(message, choices), "exit_code": int(code)}}
        click.echo(encoded(told), err=True)
    elif isinstance(error, click.UsageError):
        error.show()
    else:
        click.echo(f"slotkeeper: {redacted(message, choices)}", err=True)
    return code


def _told(error: Exception) -> tuple[int, str, str]:
    """Return exit code, type and message of an error."""
    match error:
        case click.exceptions.Abort():
            return _abort(error)
        case click.ClickException():
            return error.exit_code, type(error).__name__, one_line(error.format_message())
        case SlotkeeperError() | OSError():
            return code_of(type(error)), type(error).__name__, one_line(str(error))
    hint = "This is not foreseen: -v shows where it comes from."
    return Exit.UNEXPECTED, type(error).__name__, one_line(f"{type(error).__name__}: {error}. {hint}")


def _abort(error: click.exceptions.Abort) -> tuple[int, str, str]:
    cause = error.__cause__
    if isinstance(cause, EOFError):
        return Exit.UNEXPECTED, "Aborted", "aborted: no answer came. Nothing was changed."
    hint = f": {cause}" if isinstance(cause, Interrupted) else ""
    return Exit.INTERRUPTED, "Interrupted", f"interrupted{hint}"


def _print_traceback(error: Exception, choices: Choices) -> None:
    from traceback import format_exception

    click.echo(redacted("".join(format_exception(error)), choices), err=True)


def _reader_gone() -> int:
    """Let the interpreter's last flush write to nowhere: `slotkeeper semaphore list | head -1` is no failure to tell of."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.UNEXPECTED

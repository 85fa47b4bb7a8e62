"""Owners on a command line and in its output."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..owner import Owner

F = TypeVar("F", bound=Callable[..., Any])
Document = dict[str, Any]
ONE_SPELLING = re.compile("0|-?[1-9][0-9]*", re.ASCII)


def hold_id(text: str) -> int:
    """Read a hold id in the one spelling that an owner id has for it: 7, never 007 or +7."""
    if not ONE_SPELLING.fullmatch(text):
        raise click.BadParameter(f"{text!r} is no hold id: a signed 64-bit number, spelled like 7 or -7.")
    return int(text)


def named_owner(command: F) -> F:
    """Give a command the options that name an owner; it gets one as `owner`."""

    @click.option("--owner", metavar="OWNER_ID", help="Who: an owner id,")
    @click.option("--workflow", metavar="ID", help="or the workflow,")
    @click.option("--run", metavar="ID", help="the run")
    @click.option("--hold", type=hold_id, metavar="NUMBER", help="and the hold.")
    @wraps(command)
    def with_owner(
        *args: Any, owner: str | None, workflow: str | None, run: str | None, hold: int | None, **others: Any
    ) -> Any:
        return command(*args, owner=_one(owner, workflow, run, hold), **others)

    return with_owner  # type: ignore[return-value]  # its caller is click, which passes the options by name


def document(owner_id: str) -> Document:
    """Return the fields of an owner id, or nulls where it is none: other programs may have written the row."""
    from ..owner import Owner, OwnerIdError

    try:
        who = Owner.parse(owner_id)
    except OwnerIdError:
        return dict.fromkeys(("workflow_id", "run_id", "hold_id"))
    return {"workflow_id": who.workflow_id, "run_id": who.run_id, "hold_id": who.hold_id}


def _one(owner: str | None, workflow: str | None, run: str | None, hold: int | None) -> Owner:
    from ..owner import Owner

    parts = (workflow, run, hold)
    if owner is not None and parts == (None, None, None):
        return Owner.parse(owner)
    if owner is None and workflow is not None and run is not None and hold is not None:
        return Owner(workflow, run, hold)
    raise click.UsageError("Name one owner: --owner OWNER_ID, or --workflow ID --run ID --hold NUMBER.")

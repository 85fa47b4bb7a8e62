"""Faults to plant: each takes out one of the rules that the cluster rests on. A simulator that finds none of them is blind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from slotkeeper.locktable import Grant, Lock
from slotkeeper.locktable.lock import Moment
from slotkeeper.locktable.node import Node, Peer
from slotkeeper.locktable.node.election import Election
from slotkeeper.locktable.node.rebuild import Rebuilding
from slotkeeper.locktable.node.seat import Seat
from slotkeeper.locktable.node.speaking import Speaking
from slotkeeper.locktable.remembered import Remembered
from slotkeeper.locktable.state import State


@dataclass(frozen=True, slots=True)
class Fault:
    """A step left out."""

    name: str
    planted: Callable[[], AbstractContextManager[object]] = nullcontext


def _patched(where: type, name: str, instead: object) -> Callable[[], AbstractContextManager[object]]:
    return lambda: patch.object(where, name, instead)


def _only_what_is_held(self: State, at: Moment) -> list[Lock]:
    return self.locks(at)


def _handed_out_whatever_was_promised(self: Node, grant: Grant, epoch: int) -> Grant:
    self.has_handed_out = True
    self.held.add(grant.lock)
    return grant


async def _not_waited_for(self: Rebuilding, peer: Peer) -> bool:
    return True


async def _not_noted(self: Election, peer: Peer, until: float) -> None:
    self._horizon.need(peer, until)


@contextmanager
def _any_generation() -> Iterator[None]:
    rebuilt = State.rebuild

    def rebuild(self: State, generation: int, locks: Iterable[Lock], epoch: int | None, at: Moment) -> Any:
        return rebuilt(self, self.generation, locks, epoch, at)

    with (
        patch.object(State, "rebuild", rebuild),
        patch.object(Rebuilding, "_goes_on", property(lambda self: True)),
    ):
        yield


@contextmanager
def _no_promise_and_no_former_grants() -> Iterator[None]:
    with (
        patch.object(Node, "_kept", _handed_out_whatever_was_promised),
        patch.object(State, "granted", _only_what_is_held),
    ):
        yield


FAULTS = (
    Fault("generation", _any_generation),
    Fault("promise, and former grants", _no_promise_and_no_former_grants),
    Fault("promise", _patched(Node, "_kept", _handed_out_whatever_was_promised)),
    Fault("released ids", _patched(Remembered, "has", lambda self, name, some_id, now: False)),
    Fault("horizon wait", _patched(Rebuilding, "_has_ended", _not_waited_for)),
    Fault("horizon row", _patched(Election, "cover", _not_noted)),
    Fault("witness", _patched(Speaking, "_is_witnessed", lambda self, lock: True)),
    Fault("trust ends", _patched(Seat, "is_ours", property(lambda self: self.term is not None))),
)

"""One schedule: three lock nodes, their database, some clients, and trouble, all drawn from one seed.

Checked all along: no two clients believe to hold one lock, no two nodes trust themselves to speak, the fences of a name grow,
a client that trusts its lease is never told that it holds nothing. At the end, in calm, each lock can be had again soon, and
nobody is left without an answer.
"""

from __future__ import annotations

from asyncio import CancelledError
from math import inf
from random import Random

from schedules.ground import Ground
from schedules.history import Violation
from schedules.network import Attempt

from locksimulator.beliefs import Beliefs
from locksimulator.customer import LEASES, Customer
from locksimulator.machine import Machine
from locksimulator.post import Post
from slotkeeper.database import Batch, Key, Outcome, Row, Slice, Table, Write
from slotkeeper.database.simulated import SimulatedStore, Task
from slotkeeper.locktable import Lock
from slotkeeper.locktable.node import Terms
from slotkeeper.locktable.node.rows import CLUSTERS, HORIZON, SPEAKER

TROUBLES = (0.0, 0.0, 0.1, 0.3)
LOSSES = (0.0, 0.0, 0.1, 0.3)
SPITES = (0.0, 0.0, 0.0, 0.3)
STALLS = (0.0, 0.0, 0.002, 0.01)
CHAOS_S = 15.0
LONGEST_S = 300.0
SOON_S = 12.0
LOOK_EVERY = 8
TELLING_S = 3.0  # a release has been told to everybody by then, or its message is lost


class World(Ground):
    """A schedule, from its seed to its end."""

    def __init__(self, random: Random, *, recorded: bool = False) -> None:
        super().__init__(random, recorded=recorded)
        self.terms = Terms(
            speaker_lease_s=self.choice((3, 5)),
            margin_s=self.choice((0.0, 0.4)),
            ahead_s=2.0,
            ask_s=2.0,
            again_s=0.3,
            stop_s=4.0,
        )
        self.trouble, self.stalls = self.choice(TROUBLES), self.choice(STALLS)
        self._spite = self.choice(SPITES)
        self._skew_s = self.terms.margin_s
        self.store = SimulatedStore(lambda: self.scheduler.now + self._skew_s * self.random())
        self.post = Post(self)
        self.post.loses = self.choice(LOSSES)
        self.beliefs = Beliefs()
        self._standing_still_until = 0.0
        self.names = ("x", "y")[: 1 + int(self.random() * 1.3)]
        self.machines = {name: Machine(self, name) for name in ("a", "b", "c")}
        self.customers: dict[Task, Customer] = {}

    # --- the schedule ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Let the schedule run to its end, look at what it leaves, and end what still runs."""
        try:
            self._run()
        finally:
            self._is_over = True
            for machine in self.machines.values():
                machine.crash()
            for task in list(self.scheduler.tasks):
                self.scheduler.drop(task)
                task.coroutine.close()

    def _run(self) -> None:
        for machine in self.machines.values():
            machine.start()
        self._go(2.0 + self.random() * 4)
        for number in range(2 + int(self.random() * 3)):
            self._enter(f"c{number + 1}")
        self._plan_trouble()
        self._go(self.now + CHAOS_S * self.random())
        self._end_trouble()
        while any(not task.is_done for task in self.customers):
            self._go(self.now + 1.0)
            if self.now > LONGEST_S:
                raise Violation(
                    "clients that are never answered: " + ", ".join(c.name for c in self.customers.values())
                )
        self._go(max(self.now, self.trouble_until) + max(LEASES) + SOON_S)
        self._check_leftovers()

    def _enter(self, name: str) -> Task:
        customer = Customer(self, name)
        task = self.scheduler.spawn(customer.run(), name, customer)
        self.customers[task] = customer
        return task

    def _go(self, until: float) -> None:
        """Let time pass, and look now and then that no two nodes trust themselves to speak."""
        while self.now < until:
            self.scheduler.run(until=until, most=LOOK_EVERY)
            self.check_speakers()

    def check_speakers(self) -> None:
        """Check that one node at most trusts itself to speak. Nodes that begin to, and clients that are granted, ask too."""
        speakers = [name for name, machine in self.machines.items() if machine.is_up and machine.trusts_itself]
        if len(speakers) > 1:
            raise Violation(f"{' and '.join(speakers)} trust themselves to speak")

    def _end_trouble(self) -> None:
        self.begin_calm()
        self.post.cuts.clear()
        for machine in self.machines.values():
            machine.line.down_until = machine.paused_until = 0.0
            if not machine.is_up:
                machine.start()

    def _check_leftovers(self) -> None:
        """Look that every lock can be had, through every node, and that no request is left unanswered."""
        for name in self.names:
            self._check_free(name)
        for machine in self.machines.values():
            left = [task for task in machine.serving if not task.is_done]
            if left and not machine.is_stopping:
                raise Violation(f"requests that {machine.name} does not answer: {left}")

    def _check_free(self, name: str) -> None:
        customer = Customer(self, "heir")
        began_at = self.now
        patience_s = max(LEASES) + SOON_S + max(0.0, self.trouble_until - self.now)
        task = self.scheduler.spawn(customer.acquire(name, 2.0, 0.0, patience_s=patience_s), "heir", customer)
        while not task.is_done:
            self._go(self.now + 0.1)
        if not task.value:
            raise Violation(
                f"lock {name} is held by nobody, and cannot be had: asked from t={began_at:.3f} to {self.now:.3f}"
            )
        self.scheduler.finished(customer.release(""))

    @property
    def standing(self) -> list[Machine]:
        """The machines, as clients know them: all of them."""
        return list(self.machines.values())

    # --- trouble -----------------------------------------------------------------------------------------------------

    def _plan_trouble(self) -> None:
        """Plan some trouble of each kind, and much of one: a schedule has a theme, so that what seldom meets does meet."""
        events = (
            self._crash,
            self._pause,
            self._stop,
            self._cut,
            self._outage,
            self._customer_dies,
            self._customer_pauses,
            self._hangs_up,
        )
        theme = self.choice(events)
        for event in events:
            while self.random() < (0.75 if event == theme else 0.15):
                self.at(self.now + self.random() * CHAOS_S * 0.7, event)

    def _someone(self) -> Machine | None:
        machine: Machine = self.choice(self.standing)
        if not self.calm and self.random() < 0.5:  # rather the one that speaks
            machine = next((m for m in self.standing if m.is_up and m.node.speaking.is_trusted), machine)
        return machine if machine.is_up and not self.calm else None

    def _crash(self, *_: object) -> None:
        if (machine := self._someone()) is not None:
            self._unsure_of_late_releases()
            self.note(machine.name, "crashes")
            machine.crash()
            self.at(self.now + self.random() * 10, self._start, machine)

    def _start(self, machine: Machine, _: object) -> None:
        if not machine.is_up and not self._is_over:
            self.note(machine.name, "starts again")
            machine.start()

    def _pause(self, *_: object) -> None:
        if (machine := self._someone()) is not None:
            seconds = self.random() * 12
            machine.paused_until = self.now + seconds
            self.stands_still(seconds)
            self.note(machine.name, f"stands still for {seconds:.3f} s")

    def _stop(self, machine: Machine | None = None, _: object = None) -> None:
        machine = machine or self._someone()
        if machine is not None and machine.is_up and not machine.is_stopping:
            self.note(machine.name, "stops")
            machine.stop()
            self.at(self.now + 5 + self.random() * 10, self._start, machine)

    def meddles(self, machine: Machine) -> bool:
        """Tell whether a grant that leaves a machine is to be late; that machine stops meanwhile, and another one speaks."""
        if self.calm or self.random() >= self._spite:
            return False
        self.at(self.now + self.random() * 0.2, self._stop, machine)
        return True

    def _cut(self, *_: object) -> None:
        one, other = self.choice((("a", "b"), ("b", "c"), ("a", "c")))
        seconds = self.random() * 10
        if not self.calm:
            self.post.cuts[frozenset((one, other))] = self.now + seconds
            self.note("", f"{one} and {other} do not reach each other for {seconds:.3f} s")

    def _outage(self, *_: object) -> None:
        machines = self.standing if self.random() < 0.5 else [self.choice(self.standing)]
        seconds = self.random() * 8
        for machine in machines if not self.calm else ():
            machine.line.down_until = self.now + seconds
            self.has_trouble(seconds)
            self.note(machine.name, f"does not reach the database for {seconds:.3f} s")

    def _customer_dies(self, *_: object) -> None:
        tasks = [task for task in self.customers if not task.is_done]
        if tasks and not self.calm:
            task = self.choice(tasks)
            self.note(task.name, "dies")
            self.customers[task].die()
            self.scheduler.drop(task)
            task.coroutine.close()

    def _customer_pauses(self, *_: object) -> None:
        seconds = self.random() * 10
        if not self.calm:
            customer: Customer = self.choice(tuple(self.customers.values()))
            customer.paused_until = self.now + seconds
            self.note(customer.name, f"stands still for {seconds:.3f} s")

    def _hangs_up(self, *_: object) -> None:
        """Let a request's client be gone, and its node find out."""
        serving = [task for machine in self.standing for task in machine.serving if task.epoch and not task.is_done]
        if serving and not self.calm:
            task = self.choice(serving)
            self.note("", f"hung up: {task.name}")
            self.scheduler.cancel(task, CancelledError())

    # --- what holds --------------------------------------------------------------------------------------------------

    @property
    def all_are_known(self) -> bool:
        """Tell whether everybody who is up knows all others, and so tells them of releases."""
        up = {machine.name for machine in self.standing if machine.is_up}
        return all(up <= machine.knows for machine in self.standing if machine.is_up)

    def released(self, lock_id: str) -> None:
        """Note that a lock's release was answered by somebody who tells everybody; soon, if nothing stands still."""
        if self.now > self._standing_still_until:
            self.beliefs.released[lock_id] = self.now

    def stands_still(self, seconds: float) -> None:
        """See Ground.stands_still."""
        super().stands_still(seconds)
        self._standing_still_until = max(self._standing_still_until, self.now + seconds)
        self._unsure_of_late_releases()

    def _unsure_of_late_releases(self) -> None:
        """Note that somebody is gone, or stands still, who may have been telling the others of releases."""
        released = self.beliefs.released
        self.beliefs.released = {lock_id: at for lock_id, at in released.items() if at < self.now - TELLING_S}

    def check_held(self, lock: Lock, sent: float) -> None:
        """Check a lock that somebody else is said to hold, in answer to what was asked at some moment."""
        if self.beliefs.released.get(lock.id, inf) < sent and not self.post.has_lost:
            raise Violation(f"{lock} was released, and is held")

    # --- the database ------------------------------------------------------------------------------------------------

    def told(self, batch: Batch) -> str:
        """See Ground.told."""
        return "; ".join(_told(write) for write in batch.writes) if batch.table is CLUSTERS else "its own row"

    def decide(self, attempt: Attempt) -> Outcome:
        """See Ground.decide."""
        outcome = self.store.commit(attempt.batch)
        if self.history is not None:
            self.note(attempt.client, f"   #{attempt.number} {type(outcome).__name__.lower()}")
        return outcome

    def settled(self, attempt: Attempt) -> None:
        """See Ground.settled."""

    def seen(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """See Ground.seen."""
        return self.store.read(table, partition, slices, serial=serial)


def _told(write: Write) -> str:
    kind, instance = write.key
    assert isinstance(instance, str)
    ttl = "" if write.ttl_s is None else f" for {write.ttl_s}s"
    if kind == SPEAKER:
        return f"{write.values}{ttl}"
    assert kind == HORIZON
    return f"{write.verb.value} horizon of {instance}{ttl}"

"""One schedule: some clients, their callers, one bucket, and trouble, all drawn from one seed."""

from __future__ import annotations

from asyncio import CancelledError
from math import inf
from random import Random

from schedules.ground import Ground
from schedules.history import Violation
from schedules.network import Attempt

from simulator.client import DOMAIN, Client
from simulator.history import START_MS, short, told
from simulator.invariants import check_state, check_step
from simulator.ledger import Ledger
from simulator.picture import Picture
from simulator.script import NAME, Script
from simulator.size import LARGE, SMALL, SMALL_SHARE, TWINS
from slotkeeper.database import Applied, Batch, Key, Outcome, Row, Slice, Table, insert
from slotkeeper.database.simulated import Rows, SimulatedStore, Task
from slotkeeper.semaphore.metadata import Description
from slotkeeper.semaphore.rows import METADATA, TOKENS

TROUBLES = (0.0, 0.05, 0.15, 0.3)
TWINS_TROUBLE = 0.5
STALLS = (0.0, 0.0, 0.002, 0.01)
CHAOS_S = 8.0
HANDED_OVER_S = 3.0  # in calm, a free slot finds the waiter before that
SETTLED_S = 16.0  # after trouble, what was left open is settled before that
LEFTOVERS_S = 45.0  # the rows of the dead, leases and late attempts have ended before that
SCHEDULES_LONGEST_S = 400.0
MOST_ROUNDS = 3
PARTITION: Key = (DOMAIN, NAME, 0)
PLACE = (TOKENS.name, PARTITION)


def owner_id(number: int) -> str:
    """Return the owner that histories call o<number>."""
    return f"1:w:o{number}:{number}"


class World(Ground):
    """A schedule, from its seed to its end."""

    def __init__(self, random: Random, store: type[SimulatedStore] = SimulatedStore, *, recorded: bool = False) -> None:
        super().__init__(random, recorded=recorded)
        self.store = store(lambda: self.scheduler.now)
        self.ledger = Ledger()
        self._twins = self.random() < 0.25  # several processes act for one owner, and half of it goes wrong
        self.size = TWINS if self._twins else SMALL if self.random() < SMALL_SHARE else LARGE
        self.trouble = TWINS_TROUBLE if self._twins else self.choice(TROUBLES)
        self.stalls = self.choice(STALLS)
        self.tokens = range(1, 2 + (1 if self._twins else int(self.random() * self.random() * 3)))
        self._hidden: Rows | None = None  # what a plain read may still show
        self._unspread: Attempt | None = None
        self._shown: set[tuple[Slice, ...]] = set()
        self._free_since = self._line_at = -inf
        self._seen: Rows = {}
        self._next_end = inf
        self._ends: set[int] = set()  # when something that was written with a TTL ends
        self._held_at: dict[int, float] = {}  # when each token was last seen held
        self._scripts: dict[Task, Script] = {}
        self.known: dict[str, Description] = {}
        self.store.partitions[METADATA.name, (DOMAIN,)] = {}
        self.rows: Rows = {}  # the bucket's partition
        self._create()
        self.picture = self._hidden_picture = Picture({}, self.tokens, 0.0)
        clients = (2 if self._twins else 1) + int(self.random() * self.size.clients)
        self.clients = [Client(self, f"c{number}", self._jump_ms()) for number in range(1, 1 + clients)]

    # --- the schedule ------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        """Create the semaphore. In a small schedule everybody has read what it is."""
        size = len(self.tokens)
        if self.size is SMALL:
            self.known[NAME] = Description(NAME, DOMAIN, size, size, START_MS)
        values = {"size": size, "bucket_size": size, "created_time": START_MS}
        self.store.commit(Batch(METADATA, (DOMAIN,), (insert((NAME,), values, absent=True),)))

    def _begin(self) -> None:
        owners = 1 if self._twins else 2 + int(self.random() * self.size.owners)
        for number in range(2 if self._twins else owners + int(self.random() * self.size.callers)):
            owner = owner_id(1 + number % owners)
            self._start(self.clients[number % len(self.clients)] if self._twins else self.choice(self.clients), owner)
        self._plan_trouble()

    def _start(self, client: Client, owner: str) -> None:
        script = Script(self, client, owner, len(self._scripts))
        self._scripts[self.scheduler.spawn(script.run(), script.party, client)] = script

    def _plan_trouble(self) -> None:
        for chance, event in (
            (0.25, self._crash),
            (0.25, self._pause),
            (0.25, self._jump),
            (0.35, self._cancel_task),
            (0.2, self._cancel_owner),
        ):
            while self.random() < chance * self.size.trouble:
                soon = self.random()
                self.at(soon * soon * soon * CHAOS_S, event)

    def run(self) -> None:
        """Let the schedule run to its end, look at what it leaves, and end what still runs."""
        try:
            self._begin()
            self._run()
        finally:
            self._is_over = True
            for client in self.clients:
                client.crash()

    def forget(self, *others: object) -> None:
        """See Ground.forget."""
        super().forget(*self.clients, *(client.port for client in self.clients), *others)

    def _run(self) -> None:
        self.scheduler.run(until=CHAOS_S * self.random())
        self.begin_calm()
        while any(not task.is_done for task in self._scripts):
            self.scheduler.run(most=20)
            if self.now > SCHEDULES_LONGEST_S:
                raise Violation("callers that are never answered: " + ", ".join(t.name for t in self.scheduler.tasks))
        self.scheduler.run(until=max(self.now, self.trouble_until) + LEFTOVERS_S)
        self._look()
        self._check_leftovers()

    def _check_leftovers(self) -> None:
        picture = self.picture
        if picture.line or picture.waiting:
            raise Violation(f"somebody is left in line: {picture.line}")
        for token, held in picture.held.items():
            excuses = self.ledger.of(held.owner).excuses.values()
            if not any(excuse.counts(self.trouble_until) for excuse in excuses):
                raise Violation(f"token {token} is left to {short(held.owner)}, and nobody knows of it")
        rounds = MOST_ROUNDS if picture.held else 0
        for _ in range(rounds):  # what a batch left on its way may have handed on meanwhile
            for owner in [held.owner for held in self.picture.held.values()]:
                self._adopt(owner)
            self.scheduler.run(until=self.now + SETTLED_S)
            self._look()
        if self.picture.held or self.picture.owners:
            raise Violation(f"what nobody knew of could not be given back: {self.picture.held}")

    def _adopt(self, owner: str) -> None:
        """Give back what a crash or an unknown outcome has left behind, as its owner would."""
        alive = [client for client in self.clients if not client.is_dead]
        client = self.choice(alive) if alive and self.random() < 0.5 else Client(self, "heir")
        self.clients += [client] if client not in self.clients else []
        self.scheduler.finished(client.core.release(NAME, owner, None, 20.0))

    # --- trouble -----------------------------------------------------------------------------------------------------

    def _crash(self, *_: object) -> None:
        client = self.choice(self.clients)
        if self.calm or client.is_dead:
            return
        self.note(client.name, "crashes")
        self.ledger.crashed(client.name, {s.party for s in self._scripts.values() if s.client is client}, self.now)
        scripts = [self._scripts[task] for task in client.crash() if task in self._scripts]
        heirs = [client for client in self.clients if not client.is_dead] or [Client(self, f"{client.name}'")]
        self.clients += [client for client in heirs if client not in self.clients]
        for script in scripts:
            if self.random() < 0.5:
                self._start(self.choice(heirs), script.owner)
        self._look()

    def _pause(self, *_: object) -> None:
        if not self.calm:
            client, seconds = self.choice(self.clients), self.random() * 7
            client.paused_until = self.now + seconds
            self.stands_still(seconds)
            self.note(client.name, f"stands still for {seconds:.3f} s")

    def _jump(self, *_: object) -> None:
        client, by_ms = self.choice(self.clients), self._jump_ms()
        client.port.wall_offset_ms = START_MS + by_ms
        self.note(client.name, f"its wall clock jumps by {by_ms} ms")

    def _jump_ms(self) -> int:
        return self.choice((0, 0, -1, 3, 150, -2_000, -60_000, 3_600_000))  # type: ignore[no-any-return]

    def _cancel_task(self, *_: object) -> None:
        tasks = [task for task in self._scripts if not task.is_done]
        if tasks:
            task = self.choice(tuple(tasks))
            self.note(task.name, "is cancelled")
            self.scheduler.cancel(task, CancelledError())

    def _cancel_owner(self, *_: object) -> None:
        client, script = self.choice(self.clients), self.choice(tuple(self._scripts.values()))
        if not client.is_dead:
            self.ledger.cancelled.add(script.owner)
            self.note(client.name, f"cancels the wait of {short(script.owner)}")
            self.scheduler.spawn(self._cancelling(client, script.owner), f"{client.name}/cancel", client)

    async def _cancelling(self, client: Client, owner: str) -> None:
        try:
            await client.core.cancel(NAME, owner, 20.0)
        except Exception as error:
            self.note(client.name, f"cancel: {error!r}")

    def _failed(self, task: Task, error: BaseException) -> None:
        if not isinstance(error, CancelledError):
            raise error

    # --- the partition -----------------------------------------------------------------------------------------------

    def told(self, batch: Batch) -> str:
        """See Ground.told."""
        return told(batch)

    def decide(self, attempt: Attempt) -> Outcome:
        """Let a batch reach the partition."""
        batch, before = attempt.batch, self.rows
        self._spread()
        self._look()
        outcome = self.store.commit(batch)
        if self.history is not None:
            self.note(attempt.client, f"   #{attempt.number} {type(outcome).__name__.lower()}")
        if isinstance(outcome, Applied):
            self.rows = self.store.partitions[PLACE]
            self._hidden, self._unspread, self._shown = before, attempt, set()
            was = self._hidden_picture = self.picture
            self._note_ends(batch)
            self._look()
            check_step(was, self.picture)
        return outcome

    def _note_ends(self, batch: Batch) -> None:
        for write in batch.writes:
            if write.ttl_s is not None and (end := int(self.now) + write.ttl_s) not in self._ends:
                self._ends.add(end)
                self.at(float(end), self._look)

    def settled(self, attempt: Attempt) -> None:
        """Note that a batch has spread to a majority: every read shows it."""
        if attempt is self._unspread:
            self._spread()

    def _spread(self) -> None:
        if self._hidden is not None:
            self._hidden = None
            self._note_full(self._hidden_picture)

    def seen(self, table: Table, partition: Key, slices: tuple[Slice, ...], *, serial: bool) -> list[Row]:
        """Return what a read shows."""
        if serial:
            self._spread()
        if table is not TOKENS:
            return self.store.read(table, partition, slices, serial=serial)
        rows = self.rows
        if self._hidden is not None and slices not in self._shown:
            if self.random() < 0.5:
                rows = self._hidden
            else:
                self._shown.add(slices)
        return self.store.read_from(rows, table, partition, slices)

    def _look(self, *_: object) -> None:
        """Look at the partition as it is now."""
        rows, now = self.rows, self.scheduler.now
        if rows is self._seen and now < self._next_end:
            return
        was, self._seen = self.picture, rows
        self.picture = Picture(rows, self.tokens, now)
        self._next_end = min([end for end in self._ends if end > now], default=inf) if self._ends else inf
        self._note_full(was)
        check_state(self.picture, self.tokens)
        self.check()
        self._check_nobody_waits_in_vain()

    def check(self) -> None:
        """Check that what callers were told is true."""
        self.ledger.check(self.picture, self.now)

    def _note_full(self, picture: Picture) -> None:
        now = self.scheduler.now
        for token in picture.held:
            self._held_at[token] = now
        if picture.line:
            self._line_at = now

    def was_full_since(self, moment: float) -> bool:
        """Tell whether each token has been held since, or somebody was in line: what a reading may still have shown."""
        self._note_full(self.picture)
        if self._hidden is not None:
            self._note_full(self._hidden_picture)
        return self._line_at >= moment or all(self._held_at.get(token, -1.0) >= moment for token in self.tokens)

    def _check_nobody_waits_in_vain(self) -> None:
        if not (self.picture.free and self._somebody_waits()):
            self._free_since = -inf
        elif self._free_since == -inf:
            self._free_since = self.now
            self.at(self.now + HANDED_OVER_S, self._check_handed_over, self.now)

    def _somebody_waits(self) -> bool:
        accounts = self.ledger.accounts
        return any(
            deed.kind == "wait" for place in self.picture.line.values() for deed in accounts[place.owner].deeds.values()
        )

    def _check_handed_over(self, since: float, _: object) -> None:
        if self._free_since != since or not self._somebody_waits():
            return
        quiet_at = max(since + HANDED_OVER_S, self.trouble_until + SETTLED_S)
        if self.calm and self.now >= quiet_at:
            raise Violation(f"a slot is free and somebody waits, since t={since:.3f}: {self.picture.line}")
        self.at(max(quiet_at, self.now + HANDED_OVER_S), self._check_handed_over, since)

"""Bringing the tables in: one process does it, under the lock; the others wait and find it done.

    1. the control table, whose creation may race: each creator gives it the same id, so they make one table
    2. the lock
    3. under the lock: agreement of all nodes, and the version again
    4. each statement: still our lock? run it, agreement, next
    5. version, history and consistency pair in one batch that the lock guards
    6. the lock goes back

Every step bears repetition. Whoever dies leaves a lock that ends by its TTL, and the next one goes on.
The steps run over a blocking port: waiting for the nodes to agree blocks in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import SystemRandom
from uuid import UUID, uuid4

from ..database import BlockingPort, DatabaseError, Port, Store, Unavailable, drive
from . import control
from .control import CONTROL, Change, Control, look
from .errors import SchemaConflict, SchemaLocked, SchemaLockLost, SchemaMissing, SchemaTooOld, SchemaUnsettled
from .fit import check_consistency, check_layout, check_not_too_new, pair
from .lock import Lock, signed, this_process
from .manifest import Migration, Migrations, shipped
from .statement import CONTROL_SEED, Statement, table_id
from .version import Version

# A statement waits at most 60 s for the nodes to agree (database.cassandra.connect.SHAPING_S). A lease that outlasts it
# can be renewed between statements, and needs no thread. Should it end all the same, the next process only repeats
# statements that bear it, and our record is refused.
LEASE_S = 90
WAIT_S = 120.0  # longer than a lease: who waits for a dead process gets its turn
LOOK_S = 5.0  # a node that has not heard of the control table yet cannot serve a read of it

Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody how it goes."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a process goes about it. `who` names it in the lock and in the history; `progress` is told each step.

    The lock has a lease of `lease_s` seconds; for another process's lock we wait at most `wait_s`.
    """

    who: str = field(default_factory=this_process)
    progress: Progress = silent
    lease_s: int = LEASE_S
    wait_s: float = WAIT_S
    migrations: Migrations = field(default_factory=shipped)


@dataclass(frozen=True, slots=True)
class Report:
    """What was done: the versions before and after, and the statements that ran (in a dry run: that would run)."""

    before: Version | None
    after: Version | None
    statements: tuple[str, ...] = ()
    dry_run: bool = False


def setup(store: Store, *, dry_run: bool = False, terms: Terms | None = None, port: Port | None = None) -> Report:
    """Bring the tables into an empty keyspace. Where they are already, nothing is changed.

    Any number of processes may call it at once: one does it, the others wait. Raises SchemaTooOld (run `update`),
    SchemaTooNew, SchemaConflict, ConsistencyMismatch, SchemaLocked, SchemaLockLost, SchemaUnsettled, or a DatabaseError.
    """
    terms = terms or Terms()
    target = terms.migrations.newest
    return drive(_bootstrap(store, terms, port).bring(target, from_empty=True, dry_run=dry_run))


def update(
    store: Store,
    to: Version | None = None,
    *,
    dry_run: bool = False,
    terms: Terms | None = None,
    port: Port | None = None,
) -> Report:
    """Bring older tables to version `to`, by default the newest that this program knows. Never back to an older one.

    Raises SchemaMissing (run `setup`), UnknownVersion, and what `setup` raises.
    """
    terms = terms or Terms()
    target = terms.migrations.check_known(to) if to else terms.migrations.newest
    return drive(_bootstrap(store, terms, port).bring(target, from_empty=False, dry_run=dry_run))


def statements(
    dialect: str,
    keyspace: str,
    *,
    installed: Version | None = None,
    to: Version | None = None,
    seed: UUID | None = None,
    migrations: Migrations | None = None,
) -> tuple[str, ...]:
    """Return the statements that lead from an installed version (None: an empty keyspace) to another. Asks no database.

    Without the keyspace's `seed` the tables get fresh ids.
    """
    known, seed = migrations or shipped(), seed or uuid4()
    steps = known.between(installed, to or known.newest)
    first = () if installed else (control.statement(dialect).filled(keyspace, CONTROL_SEED),)
    return (*first, *(s.filled(keyspace, seed) for step in steps for s in step.statements[dialect]))


def _bootstrap(store: Store, terms: Terms, port: Port | None) -> _Bootstrap:
    port, random = port or BlockingPort(store), SystemRandom()
    return _Bootstrap(store, port, terms, Lock(port, signed(terms.who, random), terms.lease_s, random))


@dataclass(slots=True)
class _Bootstrap:
    """One process that brings a schema in. `ran` has the statements that it ran."""

    store: Store
    port: Port
    terms: Terms
    lock: Lock
    ran: tuple[str, ...] = ()

    async def bring(self, target: Version, *, from_empty: bool, dry_run: bool) -> Report:
        """Bring the schema to `target`, or find that another process has."""
        found = await self._look_patiently()
        before = found.installed
        self._check_start(found, target, from_empty=from_empty)
        if _is_at(found, target):
            return Report(before, before, (), dry_run)
        if dry_run:
            return Report(before, target, self._pending(found, target), dry_run)
        self._create_control()
        done = await self._lock_or_find_done(target) or await self._apply_and_release(target)
        return Report(before, done.installed, self.ran)

    def _check_start(self, found: Control, target: Version, *, from_empty: bool) -> None:
        self._check_fit(found)
        if found.installed is None and not from_empty:
            raise SchemaMissing(None, target)
        half_done = found.holder is not None  # a setup takes one version after the other: wait for it and look again
        if found.installed is not None and found.installed < target and from_empty and not half_done:
            raise SchemaTooOld(found.installed, target)

    def _check_fit(self, found: Control) -> None:
        check_consistency(found, self.store.consistency)
        check_not_too_new(found, self.terms.migrations.newest)

    def _pending(self, found: Control, target: Version) -> tuple[str, ...]:
        return statements(
            self.store.dialect,
            self.store.keyspace,
            installed=found.installed,
            to=target,
            seed=found.seed,
            migrations=self.terms.migrations,
        )

    def _create_control(self) -> None:
        """Create the control table, and wait in any case: another process's may not have reached all nodes."""
        self._run(control.statement(self.store.dialect), CONTROL_SEED, always=True)
        check_layout(CONTROL, self.store.layout(CONTROL.name), self.store.dialect)

    async def _lock_or_find_done(self, target: Version) -> Control | None:
        """Wait for the lock, or for another process to do the work. Return what it did; None when the lock is ours."""
        deadline, told = self.port.now() + self.terms.wait_s, None
        while (holder := await self.lock.acquire()) is not None:
            if holder != told:
                self.terms.progress(f"waiting for {holder}, who is changing the schema")
            told = holder
            await self.port.sleep(self.lock.random.uniform(0.25, 0.75))
            if _is_at(found := await look(self.port, serial=True), target):
                return found
            if self.port.now() > deadline:
                raise SchemaLocked(holder)
        return None

    async def _apply_and_release(self, target: Version) -> Control:
        try:
            return await self._apply(target)
        finally:
            await self._release()

    async def _apply(self, target: Version) -> Control:
        found = await look(self.port, serial=True)
        if _is_at(found, target):
            return found
        # Who held the lock before may have died between a statement and the nodes' agreement. This statement changes
        # nothing, waits for them, and brings the metadata of this client up to date.
        self._create_control()
        found = await self._look_seeded()
        self._check_fit(found)
        for step in self.terms.migrations.between(found.installed, target):
            await self._take(step, found)
            found = await look(self.port, serial=True)
        return found

    async def _look_seeded(self) -> Control:
        """Look, and see to it that there is a seed: whoever creates tables takes the one that is kept."""
        found = await look(self.port, serial=True)
        if found.seed is None:
            await self.lock.commit(control.seeded(UUID(int=self.lock.random.getrandbits(128), version=4)))
            found = await look(self.port, serial=True)
        return found

    async def _take(self, step: Migration, found: Control) -> None:
        assert found.seed is not None
        for statement in step.statements[self.store.dialect]:
            await self.lock.commit()
            self._run(statement, found.seed)
        for table in step.tables:
            check_layout(table, self.store.layout(table.name), self.store.dialect)
        await self._record(step, found)
        self.terms.progress(f"version {step.version} is installed")

    async def _record(self, step: Migration, found: Control) -> None:
        before = str(found.installed) if found.installed else None
        change = Change("update", self.lock.holder, self.port.wall_ms(), before, str(step.version), step.md5)
        levels = pair(self.store.consistency) if self.store.consistency else None
        refused = await self.lock.commit(*control.recorded(change, step.min_compatible, levels))
        if refused is not None and change.key not in refused.rows:
            self._check_fit(await look(self.port, serial=True))
            raise SchemaLockLost(None)

    async def _release(self) -> None:
        try:
            await self.lock.release()
        except (DatabaseError, SchemaUnsettled) as error:
            self.terms.progress(f"the lock was not given back, and ends within {self.lock.lease_s} s: {error}")

    async def _look_patiently(self) -> Control:
        deadline = self.port.now() + LOOK_S
        while True:
            try:
                return await self._look()
            except Unavailable:
                if self.port.now() > deadline:
                    raise
                await self.port.sleep(self.lock.random.uniform(0.25, 0.75))

    async def _look(self) -> Control:
        layout = self.store.layout(CONTROL.name)
        if layout is None:
            return Control()
        check_layout(CONTROL, layout, self.store.dialect)
        return await look(self.port, serial=True)

    def _run(self, statement: Statement, seed: UUID, *, always: bool = False) -> None:
        done = statement.done_in(self.store.layout(statement.table))
        text = statement.filled(self.store.keyspace, seed)
        if not done or always:
            self.store.shape(text)
        if not done:
            self._check_id(statement, seed)
            self.ran += (text,)
            self.terms.progress(f"{'altered' if statement.adds else 'created'} table {statement.table}")

    def _check_id(self, statement: Statement, seed: UUID) -> None:
        """Raise SchemaConflict where a table that we just created has become somebody else's."""
        found = self.store.layout(statement.table)
        expected = table_id(self.store.keyspace, statement.table, seed)
        if statement.adds is None and found is not None and found.id not in (None, expected):
            raise SchemaConflict(statement.table, (f"its id is {found.id}, not the {expected} it was to get",))


def _is_at(found: Control, target: Version) -> bool:
    return found.installed is not None and found.installed >= target

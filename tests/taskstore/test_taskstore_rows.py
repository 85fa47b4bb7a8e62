"""The journal in a database: fenced writers, commits in parts, outcomes that nobody tells, and what is dropped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from eitherface import FACES
from eventually import until
from taskstores import DatabasePlace, opened

from slotkeeper import schema
from slotkeeper.database import (
    Applied,
    Batch,
    Outcome,
    Slice,
    Store,
    Unavailable,
    Unknown,
    delete,
    insert,
    open_store,
    update,
)
from slotkeeper.taskstore import (
    Add,
    BadJournal,
    Fenced,
    JournalDamaged,
    JournalFailed,
    OutcomeUnknown,
    TaskStore,
    TaskStoreError,
)
from slotkeeper.taskstore.opening import journal_of
from slotkeeper.taskstore.rows import DatabaseJournal
from slotkeeper.taskstore.rows.payload import PART_BYTES
from slotkeeper.taskstore.rows.tables import JOURNAL, SEGMENT_HEAD, SNAPSHOTS, STORE_ROW, STORES

BIG = bytes(range(256)) * (PART_BYTES * 3 // 256)


@pytest.fixture
def rows(embedded_store: Store) -> DatabasePlace:
    """Rows of the embedded store, where no real database has to be asked."""
    return DatabasePlace(embedded_store, f"store {uuid4()}")


def segment(place: DatabasePlace, number: int = 1) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Read the rows of a segment by sequence and part."""
    found = place.store.read(JOURNAL, (place.name, number), (Slice(),), serial=True)
    return {(row["sequence"], row["part"]): dict(row) for row in found}


def meddle(place: DatabasePlace, *writes: Any, number: int = 1) -> None:
    """Change rows of a segment behind the journal's back."""
    head = segment(place, number)[SEGMENT_HEAD]
    guard = update(SEGMENT_HEAD, {"epoch": head["epoch"]}, expect={"epoch": (head["epoch"],)})
    assert place.store.commit(Batch(JOURNAL, (place.name, number), (guard, *writes))) == Applied()


def texts(journal: DatabaseJournal) -> list[bytes]:
    """Open a journal, and return the data of its tasks."""
    with TaskStore(journal) as store:
        return [task.data for task in store.every_task()]


# --- one writer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", FACES)
def test_whoever_opens_it_later_fences_the_former_writer(rows_place: DatabasePlace, face: str) -> None:
    with opened(face, rows_place.journal()) as former, opened(face, rows_place.journal()) as later:
        assert later.update("later", adds=[Add("g", b"1")])[0].id == 1

        (error,) = former.together(former.later("update", "former", adds=[Add("g", b"2")]))
        assert isinstance(error, Fenced)
        for call in (former.later("groups"), former.later("claim", "w", "g", 5), former.later("snapshot")):
            (error,) = former.together(call)
            assert isinstance(error, Fenced)
        assert [task.data for task in later.every_task()] == [b"1"]


def test_a_former_writer_that_waits_is_told_at_its_next_commit(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as former, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(former.claim, "w", "g", 5, wait_s=20.0)
        until(lambda: former.stats().waiting)
        with TaskStore(rows_place.journal()) as later:
            later.update("later", adds=[Add("g")])
            with pytest.raises(Fenced):
                former.update("former", adds=[Add("g")])
            with pytest.raises(Fenced):
                waiting.result(5)


def test_an_opportunistic_former_writer_is_fenced_too(rows_place: DatabasePlace) -> None:
    former = TaskStore(rows_place.journal(), strict=False).open()
    with TaskStore(rows_place.journal()) as later:
        former.update("former", adds=[Add("g")])
        with pytest.raises(Fenced):
            former.flush()
        until(lambda: _raises(former.groups, Fenced))
        assert later.every_task() == []
    former.close()


def test_a_former_writers_snapshot_drops_nothing(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as former:
        former.update("former", adds=[Add("g", b"1")])
        with TaskStore(rows_place.journal()) as later:
            later.update("later", adds=[Add("g", b"2")])
            with pytest.raises(Fenced):
                former.snapshot()

    assert texts(rows_place.journal()) == [b"1", b"2"]


def test_a_writer_that_slept_through_a_snapshot_finds_that_it_is_late(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as former:
        former.update("former", adds=[Add("g", b"1")])
        for _ in range(3):
            with TaskStore(rows_place.journal()) as later:
                later.snapshot()
        assert set(segment(rows_place)) == {SEGMENT_HEAD}
        with pytest.raises(Fenced):
            former.update("former", adds=[Add("g", b"2")])

    assert texts(rows_place.journal()) == [b"1"]


def test_of_many_who_open_it_at_once_one_goes_on_and_nothing_acknowledged_is_lost(rows_place: DatabasePlace) -> None:
    def work(n: int) -> list[bytes]:
        acknowledged = []
        try:
            with TaskStore(rows_place.journal()) as store:
                for turn in range(30):
                    data = b"%d.%d" % (n, turn)
                    store.update("me", adds=[Add("g", data)])
                    acknowledged.append(data)
        except (Fenced, JournalFailed):
            pass
        return acknowledged

    with ThreadPoolExecutor(4) as threads:
        acknowledged = [data for each in threads.map(work, range(4)) for data in each]

    assert sorted(texts(rows_place.journal())) == sorted(acknowledged)
    assert len(acknowledged) >= 30


def test_stores_of_one_keyspace_are_apart(embedded_store: Store) -> None:
    one, other = (DatabaseJournal(embedded_store, f"{name} {uuid4()}") for name in ("one", "other"))
    with TaskStore(one) as first, TaskStore(other) as second:
        first.update("me", adds=[Add("g")])
        assert second.every_task() == []


# --- commits --------------------------------------------------------------------------------------------------------


def test_what_is_larger_than_a_row_should_be_is_cut_and_stays_whole(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as store:
        store.update("me", adds=[Add("g", BIG), Add("g", b"small")])
        store.update("me", adds=[Add("g", b"after")])

    parts = [key for key in segment(rows_place) if key[0] == 1]
    assert len(parts) == 4
    assert texts(rows_place.journal()) == [BIG, b"small", b"after"]


def test_a_page_may_end_within_a_commit(rows_place: DatabasePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slotkeeper.taskstore.rows.replay.PAGE_ROWS", 3)
    with TaskStore(rows_place.journal()) as store:
        for n in range(7):
            store.update("me", adds=[Add("g", BIG if n % 3 == 0 else b"%d" % n)])

    assert texts(rows_place.journal()) == [BIG, b"1", b"2", BIG, b"4", b"5", BIG]


def test_segments_follow_one_another(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as store:
        for n in range(130):  # of fifty commits each
            store.update("me", adds=[Add("g", b"%d" % n)])

    assert [segment(rows_place, n)[SEGMENT_HEAD]["following"] for n in (1, 2, 3)] == [2, 3, None]
    assert texts(rows_place.journal()) == [b"%d" % n for n in range(130)]


def test_a_snapshot_drops_whole_segments_and_nobody_reads_them_again(rows_place: DatabasePlace) -> None:
    with TaskStore(rows_place.journal()) as store:
        for n in range(60):
            store.update("me", adds=[Add("g", b"%d" % n)])
        store.snapshot()
        store.update("me", adds=[Add("g", BIG)])
        store.snapshot()
        store.update("me", adds=[Add("g", b"last")])

    watched = Watched(rows_place.store)
    assert texts(DatabaseJournal(watched, rows_place.name)) == [*(b"%d" % n for n in range(60)), BIG, b"last"]
    assert {partition[1] for partition in watched.read_partitions(JOURNAL)} == {4}
    assert all(set(segment(rows_place, n)) == {SEGMENT_HEAD} for n in (1, 2, 3))
    assert len(watched.read_partitions(SNAPSHOTS)) == 1


def test_a_snapshot_that_nobody_finished_is_removed_by_the_next_one(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name)) as store:
        store.update("me", adds=[Add("g", BIG)])
        faulty.fail_when(lambda batch: batch.table == SNAPSHOTS and len(batch.writes) == 2)
        with pytest.raises(Unavailable):
            store.snapshot()
    (row,) = rows.store.read(STORES, (rows.name,), (Slice(STORE_ROW),), serial=True)
    half = (rows.name, row["writing_epoch"], row["writing_segment"])
    assert rows.store.read(SNAPSHOTS, half, (Slice(),), serial=True)

    with TaskStore(rows.journal()) as store:
        store.snapshot()

    assert rows.store.read(SNAPSHOTS, half, (Slice(),), serial=True) == []
    assert texts(rows.journal()) == [BIG]


def test_what_a_dead_writer_did_not_come_to_empty_is_emptied_later(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name)) as store:
        store.update("me", adds=[Add("g", b"1")])
        faulty.fail_when(lambda batch: batch.table == JOURNAL and len(batch.writes) > 1 and not batch.writes[1].values)
        with pytest.raises(Unavailable):
            store.snapshot()
    assert len(segment(rows)) == 2

    with TaskStore(rows.journal()) as store:
        store.snapshot()

    assert set(segment(rows)) == {SEGMENT_HEAD}
    assert texts(rows.journal()) == [b"1"]


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (delete((2, 0)), "commits 2 to 2 are missing"),
        (delete((3, 0)), "commits 3 to 3 are missing"),
        (delete((1, 1)), "not all of its 4 parts"),
        (insert((2, 0), {"data": b"rubbish", "parts": 1}), "another checksum"),
    ],
)
def test_a_commit_that_is_not_whole_is_refused(rows: DatabasePlace, write: Any, says: str) -> None:
    with TaskStore(rows.journal()) as store:
        for data in (BIG, b"2", b"3"):
            store.update("me", adds=[Add("g", data)])
    meddle(rows, write)

    with pytest.raises(JournalDamaged, match=says):
        texts(rows.journal())


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (delete((1,)), "part 1 of"),
        (insert((0,), {"data": b"rubbish"}), "part 0|checksum"),
        (delete((-1,)), "head row is missing"),
    ],
)
def test_a_snapshot_that_is_not_whole_is_refused(rows: DatabasePlace, write: Any, says: str) -> None:
    with TaskStore(rows.journal()) as store:
        store.update("me", adds=[Add("g", BIG)])
        store.snapshot()
    (row,) = rows.store.read(STORES, (rows.name,), (Slice(STORE_ROW),), serial=True)
    partition = (rows.name, row["snapshot_epoch"], row["snapshot_segment"])
    guard = update((-1,), {"data": None}, expect={"checksum": (None,)})
    head = rows.store.read(SNAPSHOTS, partition, (Slice((-1,)),), serial=True)[0]
    guard = update((-1,), {"data": None}, expect={"parts": (head["parts"],)})
    writes = (delete((-1,), expect={"parts": (head["parts"],)}),) if write.key == (-1,) else (guard, write)
    assert rows.store.commit(Batch(SNAPSHOTS, partition, writes)) == Applied()

    with pytest.raises(JournalDamaged, match=says):
        texts(rows.journal())


# --- outcomes -------------------------------------------------------------------------------------------------------


class Watched:
    """A store that notes what is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads: list[tuple[Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, table: Any, partition: Any, slices: Any, *, serial: bool) -> Any:
        """Note, and read."""
        self.reads.append((table, partition))
        return self._store.read(table, partition, slices, serial=serial)

    def read_partitions(self, table: Any) -> set[Any]:
        """Return the partitions of a table that were read."""
        return {partition for each, partition in self.reads if each == table}


class Faulty:
    """A store whose commits fail when they are told to: before they apply, after it, or late."""

    def __init__(self, store: Store, lost: int = 0, *, applied: bool = False, late: bool = False) -> None:
        self._store, self.lost, self.applied, self.late = store, lost, applied, late
        self.commits = 0
        self._when: Callable[[Batch], bool] | None = None
        self._on_its_way: list[Batch] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def fail_when(self, when: Callable[[Batch], bool]) -> None:
        """Let the next batch of a kind fail, and nothing happen."""
        self._when = when

    def commit(self, batch: Batch) -> Outcome:
        """Commit, or do not; tell, or do not."""
        self.commits += 1
        if self._when is not None and self._when(batch):
            self._when = None
            raise Unavailable
        if self.commits == self.lost:
            if self.applied:
                self._store.commit(batch)
            elif self.late:
                self._on_its_way.append(batch)
            return Unknown(TimeoutError())
        outcome = self._store.commit(batch)
        while self._on_its_way:
            self._store.commit(self._on_its_way.pop())  # an attempt that was given up lands behind its repetition
        return outcome

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        """Commit at once."""
        future: Future[Outcome] = Future()
        future.set_result(self.commit(batch))
        return future


STORY = 22  # commits of the story below, at least


@pytest.mark.parametrize("how", ["never", "applied", "late"])
@pytest.mark.parametrize("lost", range(1, STORY + 1))
def test_an_unknown_outcome_changes_nothing_about_the_end(rows: DatabasePlace, lost: int, how: str) -> None:
    faulty = Faulty(rows.store, lost, applied=how == "applied", late=how == "late")
    with TaskStore(DatabaseJournal(faulty, rows.name, segment_commits=2)) as store:
        store.update("me", adds=[Add("g", b"1")])
        store.update("me", adds=[Add("g", b"2")])
        store.update("me", adds=[Add("g", BIG)])
        store.snapshot()
        store.update("me", adds=[Add("g", b"4")], deletes=[1])
        before = store.every_task()
    assert faulty.commits >= STORY

    with TaskStore(rows.journal()) as store:
        assert store.every_task() == before
        assert store.update("me", adds=[Add("g")])[0].id == 5


def test_nothing_happened_is_told_as_that(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name)) as store:
        for number in (1, 2):  # of the four parts, the first and the last one
            faulty.fail_when(lambda batch, n=number: batch.writes[1].key[1] == (0 if n == 1 else 3))  # type: ignore[misc]
            with pytest.raises(Unavailable):
                store.update("me", adds=[Add("g", BIG)])
            assert store.every_task() == []
        store.update("me", adds=[Add("g", b"small")])

    assert texts(rows.journal()) == [b"small"]


def test_what_a_dead_writer_had_only_half_written_does_not_count(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name)) as store:
        store.update("me", adds=[Add("g", b"1")])
        faulty.fail_when(lambda batch: batch.writes[1].key == (2, 3))  # the last of four parts
        with pytest.raises(Unavailable):
            store.update("me", adds=[Add("g", BIG)])
    assert (2, 2) in segment(rows)

    assert texts(rows.journal()) == [b"1"]
    with TaskStore(rows.journal()) as store:
        store.update("me", adds=[Add("g", b"2")])  # in the same place
    assert texts(rows.journal()) == [b"1", b"2"]


def test_a_silence_that_lasts_is_told_and_settled_later(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name), timeout_s=0.1) as store:
        store.update("me", adds=[Add("g", b"1")])
        faulty.lost, faulty.applied = faulty.commits + 1, True
        silent, faulty.commit = faulty.commit, lambda batch: Unknown(TimeoutError())  # type: ignore[method-assign]
        with pytest.raises(OutcomeUnknown):
            store.update("me", adds=[Add("g", b"2")])
        with pytest.raises(TaskStoreError):
            store.groups()
        faulty.commit = silent  # type: ignore[method-assign]
        until(lambda: not _raises(store.groups, OutcomeUnknown))
        assert [task.data for task in store.every_task()] == [b"1", b"2"]

    assert texts(rows.journal()) == [b"1", b"2"]


def test_a_commit_that_applied_before_it_was_fenced_is_acknowledged(rows: DatabasePlace) -> None:
    faulty = Faulty(rows.store)
    with TaskStore(DatabaseJournal(faulty, rows.name)) as former:
        former.update("me", adds=[Add("g", b"1")])
        real = faulty.commit

        def lost_and_fenced(batch: Batch) -> Outcome:
            rows.store.commit(batch)
            faulty.commit = real  # type: ignore[method-assign]
            assert texts(rows.journal()) == [b"1", b"2"]  # another one opens it
            return Unknown(TimeoutError())

        faulty.commit = lost_and_fenced  # type: ignore[method-assign]
        assert former.update("me", adds=[Add("g", b"2")])
        with pytest.raises(Fenced):
            former.update("me", adds=[Add("g", b"3")])


# --- opening --------------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Store]:
    """A store without tables."""
    store = open_store(f"sqlite:///{tmp_path}/bare.db")
    yield store
    store.close()


def test_the_tables_have_to_be_there(bare: Store) -> None:
    with pytest.raises(schema.SchemaMissing):
        TaskStore(DatabaseJournal(bare)).open()

    first = schema.Migrations(schema.shipped().known[:1])
    schema.setup(bare, terms=schema.Terms(migrations=first))
    with pytest.raises(schema.SchemaTooOld):
        TaskStore(DatabaseJournal(bare)).open()


def test_a_url_names_database_and_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    store = open_store(url)
    schema.setup(store)
    store.close()

    with TaskStore(f"{url}#billing") as tasks:
        tasks.update("me", adds=[Add("g", b"1")])
        with pytest.raises(TaskStoreError):
            TaskStore(tasks.journal).open()
    with TaskStore(f"{url}#billing") as tasks:
        assert [task.data for task in tasks.every_task()] == [b"1"]
    with TaskStore(url) as tasks:
        assert tasks.every_task() == []


@pytest.mark.parametrize("name", ["", "disk:", "memory:", "postgres://me:secret@host/db"])
def test_what_names_no_journal_is_told_without_secrets(name: str) -> None:
    with pytest.raises(BadJournal) as error:
        journal_of(name)

    assert "secret" not in str(error.value)


# --- crashes --------------------------------------------------------------------------------------------------------


def test_five_crashes_on_cassandra_lose_nothing(cassandra_url: str, cassandra_store: Store) -> None:
    script = Path(__file__).parents[1] / "bench" / "taskcrash.py"
    command = [sys.executable, str(script), "--rounds", "5", "--longest", "0.5", "--journal", f"{cassandra_url}#crash"]

    run = subprocess.run(command, capture_output=True, text=True, timeout=160, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 crashes" in run.stdout


def _raises(call: Callable[[], object], kind: type[Exception]) -> bool:
    try:
        call()
    except kind:
        return True
    return False

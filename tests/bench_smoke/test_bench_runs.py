"""The bench runs: each load comes to its readings, whatever they are. How fast anything is, no test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from bench import growth, handoff, loads, places, suite, taskloads, tasks
from bench.__main__ import main
from bench.crowd import NothingCounted, Readings
from bench.figures import Figure, Line, Measure, Record, Suite, Target
from bench.floors import floor
from bench.loads import Crowd
from bench.run import steps
from click.testing import CliRunner, Result

HOLD_S = (0.005, 0.01)
PATIENCE_S = (0.1, 0.5, 2.0, 8.0)  # a disk or a server may stall for longer than a short window
Run = Callable[[str, float], Readings]

CYCLES: dict[str, Run] = {
    "floor": partial(floor, threads=3),
    "threads": partial(loads.threads, crowd=Crowd(3)),
    "threads waiting, with leases": partial(loads.threads, crowd=Crowd(3, tokens=2, waits=True, lease_s=30)),
    "threads on some buckets": partial(
        loads.threads, crowd=Crowd(3, tokens=20, bucket_size=10, hold_s=0.01, waits=True)
    ),
    "tasks": partial(loads.tasks, crowd=Crowd(3)),
    "processes": partial(loads.processes, count=2, crowd=Crowd(2, tokens=3, waits=True)),
    "after many cycles": partial(growth.after_many, cycles=20, samples=1),
}
RATES: dict[str, Run] = {
    "pairs": partial(taskloads.pairs, clients=2),
    "appends": partial(taskloads.appends, threads=2),
    "disk updates": partial(taskloads.disk_updates, clients=2),
    "disk updates of a loop": partial(taskloads.disk_updates, clients=2, updates=taskloads.in_store_tasks),
    "empty requests": partial(taskloads.requests, clients=2, asked=taskloads.NOTHING),
    "claims over HTTP": partial(taskloads.requests, clients=2, asked=taskloads.CLAIM),
    "claims through the client": partial(taskloads.client_claims, clients=2),
    "replay": partial(taskloads.replay, records=2_000),
}
SPREADS: dict[str, Run] = {
    "floor": partial(floor, threads=1),
    "floor with pauses": partial(floor, threads=1, pause_s=HOLD_S),
    "latency": loads.latency,
    "within": partial(handoff.within, hold_s=HOLD_S),
    "between": partial(handoff.between, hold_s=HOLD_S),
    "first acquire": partial(growth.first_acquire, tokens=5, samples=2),
    "release before nobody": partial(growth.release_before, waiters=0, samples=2),
    "release before a line": partial(growth.release_before, waiters=4, samples=2),
}


def read(load: Run, url: str) -> Readings:
    """Measure for as long as it takes for something to count."""
    for seconds in PATIENCE_S:
        with suppress(NothingCounted):
            found = load(url, seconds)
            if found.get("cycles") != 0 and found.get("rate") != 0:
                return found
    raise AssertionError(f"nothing counted in {PATIENCE_S[-1]} s")


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with the tables."""
    return places.ready(f"sqlite:///{tmp_path_factory.mktemp('bench') / 'bench.db'}")


@pytest.mark.parametrize("load", CYCLES.values(), ids=CYCLES)
def test_a_load_counts_cycles(load: Run, sqlite_url: str) -> None:
    assert read(load, sqlite_url)["cycles"] > 0


@pytest.mark.parametrize("load", SPREADS.values(), ids=SPREADS)
def test_a_load_times_what_it_does(load: Run, sqlite_url: str) -> None:
    found = read(load, sqlite_url)
    assert 0 < found["p50"] <= found["p99"]


@pytest.mark.parametrize("load", RATES.values(), ids=RATES)
def test_a_load_of_tasks_counts(load: Run, tmp_path: Path) -> None:
    assert read(load, f"tasks:{tmp_path}")["rate"] > 0
    assert list(tmp_path.iterdir()) == []


def test_tasks_in_a_database_are_counted(sqlite_url: str) -> None:
    assert read(partial(taskloads.database_updates, clients=2), sqlite_url)["rate"] > 0


def test_tasks_take_memory() -> None:
    assert taskloads.memory("", PATIENCE_S[0], tasks=2_000)["KiB"] > 200


def test_leases_take_memory(sqlite_url: str) -> None:
    assert growth.memory(sqlite_url, PATIENCE_S[0], leases=10)["KiB"] > 0


@pytest.fixture(scope="module")
def ready_cassandra_url(cassandra_url: str) -> str:
    """A keyspace with the tables."""
    return places.ready(cassandra_url)


@pytest.mark.parametrize("name", ["floor", "threads", "tasks"])
def test_a_load_counts_cycles_on_cassandra(name: str, ready_cassandra_url: str) -> None:
    assert read(CYCLES[name], ready_cassandra_url)["cycles"] > 0


def test_tasks_in_cassandra_are_counted(ready_cassandra_url: str) -> None:
    assert read(partial(taskloads.database_updates, clients=4), ready_cassandra_url)["rate"] > 0


@pytest.mark.parametrize("name", ["within", "between"])
def test_a_load_times_what_it_does_on_cassandra(name: str, ready_cassandra_url: str) -> None:
    found = read(SPREADS[name], ready_cassandra_url)
    assert 0 < found["p50"] <= found["p99"]


@pytest.mark.parametrize(
    "whole", [suite.cassandra("", long=True), suite.sqlite(""), tasks.local("", long=True)], ids=lambda s: s.database
)
def test_what_is_compared_stands_in_one_group(whole: Suite) -> None:
    for group in whole.groups:
        names = [measure.name for measure in group]
        assert len(set(names)) == len(names)
        assert set(names) >= {name for measure in group for name in measure.leans_on()}


def test_picking_a_measurement_keeps_its_floor() -> None:
    picked = suite.sqlite("").only("64 tasks")
    assert [measure.name for group in picked.groups for measure in group] == [suite.FLOOR_64, "64 tasks"]


def test_every_second_round_goes_backwards() -> None:
    a, b = (Measure(name, lambda *_: {}, (), once=name == "b") for name in "ab")
    taken = [(step.round, step.measure.name) for step in steps([Suite("db", "", ((a,), (b, a)))], 2)]
    assert taken == [(0, "a"), (0, "b"), (0, "a"), (1, "a"), (1, "a")]


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    figure = Figure("db", Line("x", "cycles", "cycles/s", target=Target(at_least=5)), (10, 30, 80), (1, 10, 10))
    assert (figure.value, figure.floor, figure.ratio, figure.met) == (30, 10, 8, True)


def test_a_measurement_whose_floor_failed_has_no_figure_of_that_round() -> None:
    x = Measure("x", lambda *_: {}, (Line("x", "cycles", "cycles/s", ("floor", "cycles")),))
    whole, record = Suite("db", "", ((x,),)), Record()
    record.note(whole, 0, 0, "x", {"cycles": 1.0})
    assert record.figures([whole]) == []


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command on measurements that a test chooses, two rounds, with a JSON file."""

    def run(*measures: Measure) -> Result:
        monkeypatch.setattr(suite, "sqlite", lambda url: Suite("SQLite", url, (measures,)))
        options = ["--seconds", "0.05", "--rounds", "2", "--json", str(tmp_path / "bench.json")]
        return CliRunner().invoke(main, [*options, "--database", f"sqlite:///{tmp_path / 'bench.db'}"])

    return run


def test_the_command_prints_a_table_and_writes_json(measure: Callable[..., Result], tmp_path: Path) -> None:
    beside = Line("ours", "cycles", "cycles/s", ("floor", "cycles"), Target(at_least=5))
    ran = measure(Measure("floor", lambda *_: {"cycles": 2.0}, ()), Measure("x", lambda *_: {"cycles": 8.0}, (beside,)))
    assert ran.exit_code == 0, ran.output
    assert "8.00 cycles/s" in ran.stdout
    assert "targets missed: ours" in ran.stderr
    (figure,) = json.loads((tmp_path / "bench.json").read_text())["figures"]
    assert (figure["values"], figure["ratio"], figure["met"]) == ([8, 8], 4, False)


def test_the_command_measures_task_stores_in_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = Suite("Task store", f"tasks:{tmp_path}", (tasks._memory()[:1],))
    monkeypatch.setattr(tasks, "local", lambda url, long: whole)
    ran = CliRunner().invoke(main, ["--quick", "--seconds", "0.05", "--database", f"tasks:{tmp_path}"])
    assert ran.exit_code == 0, ran.output
    assert "claim and delete, 1 caller" in ran.stdout


def test_a_measurement_that_fails_is_told_and_ends_nothing_else(measure: Callable[..., Result]) -> None:
    whole = Measure("y", lambda *_: {"cycles": 8.0}, (Line("y", "cycles", "cycles/s"),))
    ran = measure(Measure("x", _fail, ()), whole)
    assert ran.exit_code == 1
    assert ran.stderr.count("failed: SQLite: x (round") == 2
    assert "8.00 cycles/s" in ran.stdout


def _fail(url: str, seconds: float) -> Readings:
    raise OSError("no such luck")

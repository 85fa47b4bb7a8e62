"""Versions, their folders and their statements. No database."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from slotkeeper import schema
from slotkeeper.database import Layout
from slotkeeper.schema import Migrations, Version
from slotkeeper.schema.statement import Statement, split

Future = Callable[[int], Migrations]


def test_versions_compare_by_number() -> None:
    assert Version.parse("0.10") > Version.parse("0.9")
    assert Version.parse("1.0") > Version.parse("0.10")
    assert str(Version.parse("0.10")) == "0.10"


@pytest.mark.parametrize("text", ["", "1", "v0.1", "0.1.2", "0.01", "01.1", " 0.1", "0.1\n", "0.-1", "0.١"])  # noqa: RUF001
def test_a_version_has_one_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="is no schema version"):
        Version.parse(text)


def test_the_shipped_versions_have_their_tables_in_both_dialects() -> None:
    known, first = schema.shipped().known, Version(0, 1)

    assert [(each.version, each.min_compatible) for each in known] == [(Version(0, n), first) for n in (1, 2, 3)]
    for each in known:
        for dialect in ("cql", "sql"):
            assert [s.table for s in each.statements[dialect]] == [table.name for table in each.tables]


def test_steps_lead_from_one_version_to_another(future: Future) -> None:
    known = future(3)

    def steps(installed: Version | None, to: Version) -> list[str]:
        return [str(step.version) for step in known.between(installed, to)]

    assert steps(None, known.newest) == ["0.1", "0.2", "0.3"]
    assert steps(Version(0, 1), Version(0, 2)) == ["0.2"]
    assert steps(Version(0, 3), Version(0, 1)) == []


def test_a_digest_changes_with_any_file(future: Future, tmp_path: Path) -> None:
    before = future(2).known[-1].md5
    change = tmp_path / "versions_2" / "v0_2" / "change.cql"
    change.write_text(change.read_text() + "-- a word\n")

    assert future(2).known[-1].md5 != before


def test_a_folder_under_another_versions_name_is_refused(future: Future, tmp_path: Path) -> None:
    future(2)
    (tmp_path / "versions_2" / "v0_2").rename(tmp_path / "versions_2" / "v0_7")

    with pytest.raises(ValueError, match=r"v0_7 has the manifest of version 0\.2"):
        schema.load(tmp_path / "versions_2")


def test_a_manifest_with_a_strange_field_is_refused(future: Future, tmp_path: Path) -> None:
    future(2)
    manifest = tmp_path / "versions_2" / "v0_2" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "CurrentVersion": "0.2"}))

    with pytest.raises(ValueError, match="CurrentVersion"):
        schema.load(tmp_path / "versions_2")


def test_a_folder_without_versions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no schema version"):
        schema.load(tmp_path)


def test_comments_stay_in_the_files() -> None:
    text = "-- first; not a statement\nCREATE TABLE IF NOT EXISTS a (  -- of numbers; see b\n  b int\n);\n\n--\n"

    assert split(text) == (Statement("CREATE TABLE IF NOT EXISTS a (\n  b int\n)", "a"),)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE a (b int PRIMARY KEY)",
        "DROP TABLE a",
        "ALTER TABLE a DROP b",
        "ALTER TABLE a ADD b int, c int x; ALTER TABLE a RENAME b TO c",
        "INSERT INTO a (b) VALUES (1)",
    ],
)
def test_a_statement_that_does_not_bear_repetition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="creates a table IF NOT EXISTS or adds one column"):
        split(text)


def test_a_statement_knows_whether_it_is_done() -> None:
    (created, added) = split("CREATE TABLE IF NOT EXISTS a (b int); ALTER TABLE a ADD c map<text, int>;")
    bare, whole = Layout(("b",), (), {"b": "int"}), Layout(("b",), (), {"b": "int", "c": "map<text, int>"})

    assert [created.done_in(layout) for layout in (None, bare, whole)] == [False, True, True]
    assert [added.done_in(layout) for layout in (None, bare, whole)] == [False, False, True]


def test_an_update_lists_only_its_own_statements(future: Future) -> None:
    texts = schema.statements("sql", "", installed=Version(0, 1), migrations=future(3))

    assert [text.partition(" TABLE ")[0] for text in texts] == ["ALTER", "CREATE"]
    assert not any("{id}" in text for text in schema.statements("cql", "slots", migrations=future(3)))


def test_the_story_of_the_package_is_true() -> None:
    assert doctest.testmod(schema).failed == 0

"""The package keeps what its docstring says: the example runs, and it is light to import."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys

import slotkeeper.owner

HEAVY = {"cassandra", "click", "rich", "asyncio", "sqlite3", "msgspec", "tenacity", "threading"}
IMPORTED = """
import sys; before = set(sys.modules); import slotkeeper.owner
import json; print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_example_in_the_docstring_runs() -> None:
    results = doctest.testmod(slotkeeper.owner)

    assert results.attempted >= 5
    assert results.failed == 0


def test_importing_it_brings_in_nothing_heavy_and_none_of_the_other_packages() -> None:
    fresh = subprocess.run([sys.executable, "-I", "-c", IMPORTED], capture_output=True, check=True, timeout=60)
    modules = json.loads(fresh.stdout)

    assert not HEAVY & {name.partition(".")[0] for name in modules}
    ours = {name for name in modules if name.startswith("slotkeeper.") and not name.startswith("slotkeeper.owner")}
    assert ours == {"slotkeeper.errors"}


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in slotkeeper.owner.__all__:
        public = getattr(slotkeeper.owner, name)
        assert isinstance(public, str) or public.__doc__

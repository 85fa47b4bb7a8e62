"""The package keeps what its docstring says: the example runs, and the driver is imported only by who needs it."""

from __future__ import annotations

import doctest
import subprocess
import sys

from slotkeeper import database

IMPORTED = """
import sys
from slotkeeper.database import open_store
open_store("sqlite:///:memory:").close()
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"cassandra", "click", "rich"}))
"""


def test_example_in_the_docstring_runs() -> None:
    results = doctest.testmod(database)

    assert results.attempted >= 5
    assert results.failed == 0


def test_embedded_store_brings_in_no_driver() -> None:
    fresh = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, check=True, text=True, timeout=60)

    assert fresh.stdout.strip() == ""

"""The Java that can run a node."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SUPPORTED = (17, 11)
INSTALLED_BESIDE = ("/usr/lib/jvm/*/bin/java", "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java")


class NoJava(Exception):
    """No Java 17 or 11 was found, and Cassandra 5.0 runs on no other. Install one, or set JAVA_HOME."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def find_java() -> Path:
    """Give the first `java` of a version that Cassandra takes; raises NoJava."""
    for java in _candidates():
        if _major(java) in SUPPORTED:
            return java
    raise NoJava


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield Path(found)
    for pattern in INSTALLED_BESIDE:  # the default may be too new, and a fit one lie beside it
        yield from sorted(Path("/").glob(pattern.lstrip("/")))


def _major(java: Path) -> int | None:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None

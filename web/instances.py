"""The headers with which a service and its clients tell one process from the next, and what a service says to the wrong one."""

from __future__ import annotations

INSTANCE, FOR, ANOTHER = "service-instance", "for-service-instance", "another-instance"

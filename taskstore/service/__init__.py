"""The task store over HTTP: the documented contract of its reference, and ours beside it.

    GET   /groups  /task/ID  /tasks/ID,ID  /group/NAME?limit=&owned=      ours: /tasks  /stats
    POST  /update  /claim                                                 ours: /renew  /release  /snapshot  /flush

One process has the journal open and answers; everybody else asks it. A refused change is answered with 409, one that no state
would allow with 422, both with every reason there is; all other failures are problem documents, whose type tells whether
nothing happened (503) or something may have (504). An answer promises what the store promises.
"""

from __future__ import annotations

from .application import application
from .limits import Limits

__all__ = ["Limits", "application"]

"""What each error of the driver says about a lightweight transaction that was sent at most once.

The table is spec section 3.3. It holds because nothing here is ever sent twice: FallthroughRetryPolicy, no speculation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import cassandra
from cassandra import ConsistencyLevel, DriverException, OperationTimedOut, ReadFailure, ReadTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import (
    ErrorMessage,
    IsBootstrappingErrorMessage,
    PreparedQueryNotFound,
    RequestValidationException,
)

from ..batch import Unknown
from ..errors import DatabaseError, KeyspaceMissing, LoginRefused, StatementRejected, TableMissing, Unavailable

SERIAL_LEVELS = (ConsistencyLevel.SERIAL, ConsistencyLevel.LOCAL_SERIAL)
# Two classes of one name: the driver turns some error frames into its own exceptions and raises others as they came.
REJECTED = (cassandra.RequestValidationException, RequestValidationException)

TABLE_MISSING = re.compile(r"^(table \S+ does not exist|unconfigured table )", re.IGNORECASE)


def commit_failed(error: Exception, *, sent: bool) -> Unknown:
    """Return Unknown for an error that leaves a batch open. Raises a DatabaseError for one that says: not applied."""
    if not sent or _never_proposed(error):
        raise nothing_happened(error) from error
    return Unknown(error, answered=_answered(error))


def nothing_happened(error: BaseException) -> DatabaseError:
    """Return our error for one of the driver's after which nothing was changed: any failed read, and a refused write.

    Under contention a serial read fails as a *write* timeout; it is a read all the same.
    """
    text = first_line(error)
    if isinstance(error, DatabaseError):
        return error
    if "does not exist" in text and "eyspace" in text:
        return KeyspaceMissing(f"{text}. Create it with `slotkeeper schema create-keyspace`.")
    if TABLE_MISSING.search(text):
        return TableMissing(f"{text}. Bring the tables in with `slotkeeper schema setup`.")
    if isinstance(error, PreparedQueryNotFound) or not isinstance(error, REJECTED):
        return Unavailable(f"The database did not serve the request: {text}. Nothing was changed; try again.")
    return StatementRejected(f"The database rejected the statement: {text}. Nothing was changed.")


def connect_failed(error: BaseException, hosts: Iterable[str]) -> DatabaseError:
    """Return our error for a connection that did not come about. A refused login is what to mend, whoever else is down."""
    where, causes = ", ".join(hosts), list(_causes(error))
    for cause in causes:
        if isinstance(cause, cassandra.AuthenticationFailed):
            return LoginRefused(f"{where} refused the login: {first_line(cause)}. Check the user and the password.")
    return Unavailable(
        f"No connection to {where}: {first_line(causes[0])}. Is it running, and are host and port right?"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give what each of the hosts said, where the driver only says that no host would do."""
    if isinstance(error, NoHostAvailable) and error.errors:
        for each in error.errors.values() if isinstance(error.errors, dict) else error.errors:
            yield from _causes(each)
    else:
        yield error


def first_line(error: BaseException) -> str:
    """Return the one line of an error that a person can use."""
    error = next(_causes(error))
    text = getattr(error, "message", None) if isinstance(error, ErrorMessage) else str(error)
    # Error from server: code=2200 [Invalid query] message="..."
    quoted = re.search(r'message="(.+)"', str(text), re.DOTALL)
    lines = (quoted[1] if quoted else str(text or "")).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _never_proposed(error: Exception) -> bool:
    """Tell whether the server answered that it made no proposal for this request, and makes none."""
    if isinstance(error, cassandra.Unavailable):
        # At the commit level it can come after the value was decided; at a serial one only before anything is proposed.
        return error.consistency in SERIAL_LEVELS
    # A read error comes from the read phase, before the proposal of that round.
    return isinstance(error, (*REJECTED, ReadTimeout, ReadFailure, IsBootstrappingErrorMessage))


def _answered(error: Exception) -> bool:
    """Tell whether the server itself answered. After its silence, it may still be at work."""
    return isinstance(error, DriverException | ErrorMessage) and not isinstance(error, OperationTimedOut)

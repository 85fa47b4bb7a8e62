"""What the HTTP services and their clients share. It knows neither tasks nor locks.

A service: `application` puts its endpoints together with all that each service has (`/healthz`, `/readyz`, `/metrics`,
`/openapi.json`), `serving` runs it until it is told to stop. Around the endpoints: `tokens` (who may ask), `reading` (how much
may be sent), `repeats` (`Idempotency-Key`), `metrics`, and `problem`, as which each error is answered. `quick` reads HTTP where
httptools is installed.

A client: `caller` is the port that its core asks through, `callers` has one for threads and one for asyncio, `failures` what
can come instead of an answer. `peers` is how services ask one another.
"""

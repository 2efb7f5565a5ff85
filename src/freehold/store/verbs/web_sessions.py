"""Sessions of the dashboard: opened by a sign-in, used by each request, closed by a sign-out.

The store has digests only: a copy of the database is of no use for signing in. A session
belongs to the token that opened it, and is of no use once the token is not accepted any more.
"""

from __future__ import annotations

from contextlib import suppress

from freehold.errors import StoreError
from freehold.model.timestamps import time_of
from freehold.store.statements import Row, Verb, read, write
from freehold.store.types import IDLE_SECONDS, LIFETIME_SECONDS, WebSession

#: The use of a session is written at most this often, so that most requests only read.
TOUCH_SECONDS = 60.0


def open_web_session(digest: str, token_digest: str, author: str | None = None) -> Verb[None]:
    """Start a session, and delete some that have ended."""
    yield from write(
        "open_web_session",
        digest=digest,
        token_digest=token_digest,
        author=author,
        lifetime_seconds=LIFETIME_SECONDS,
    )


def use_web_session(digest: str) -> Verb[WebSession | None]:
    """The session of a cookie, which is now in use; None if there is none, or it has ended."""
    rows = yield from read(
        "web_session", digest=digest, idle_seconds=IDLE_SECONDS, touch_seconds=TOUCH_SECONDS
    )
    if not rows:
        return None
    *columns, is_stale = rows[0]
    if is_stale:
        # A store that is full or read-only can still be looked at.
        with suppress(StoreError):
            yield from write("touch_web_session", digest=digest)
    return _session(tuple(columns))


def close_web_sessions(digest: str | None = None, token_digest: str | None = None) -> Verb[None]:
    """End one session, or all sessions of a token."""
    yield from write("close_web_sessions", digest=digest, token_digest=token_digest)


def web_sessions(limit: int = 100) -> Verb[list[WebSession]]:
    """Open sessions, the newest first."""
    rows = yield from read("web_sessions", limit=limit)
    return [_session(row) for row in rows]


def _session(row: Row) -> WebSession:
    digest, token_digest, author, created_at, seen_at, expires_at = row
    times = (time_of(created_at), time_of(seen_at), time_of(expires_at))
    return WebSession(digest, token_digest, author, *times)

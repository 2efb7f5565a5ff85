"""Bugs that only transactions beside each other show, planted in the statements for PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from freehold.store.postgres import session
from freehold.store.sqlfiles import load_statements

_LOCK = "pg_try_advisory_xact_lock(hashtextextended(name, @schema_key@ + 1))"
_LOCKED = (
    "coalesce(string_to_array(current_setting('freehold.limits', true), chr(10)), array[]::text[])"
)
_COUNT = "@schema@.count_leased(name, max_leases)"
_GIVEN = "target from json_to_recordset(:rows::json) as g(target text)"
_GONE = "select id from held"
_TOKEN = "nextval('@schema@.lease_token') as token"
_BUSY_SECONDS = 0.005
_ALL_WON = "where (select count(*) from winner where known) > 0"


def counted_before_the_lock(texts: dict[str, str]) -> None:
    """One statement takes the lock and counts: what it sees is older than its lock."""
    texts["try_limits"] = _replaced(texts["try_limits"], _LOCK, "true")
    lock = _LOCK.replace("(name,", "(n,")
    in_claim = _replaced(
        texts["claim"], _LOCKED, f"array(select n from unnest({_LOCKED}) n where {lock})"
    )
    seen = (
        "(select count(*)::integer from @schema@.job h where h.stage = 'h' "
        "and h.queue = name and h.lease_expires_at > (select @schema@.clock()))"
    )
    texts["claim"] = _replaced(in_claim, _COUNT, seen)


def promoted_with_the_ending(texts: dict[str, str]) -> None:
    """The statement that takes the holder away promotes the next one that it sees: whoever was
    put behind the holder while it waited for its lock is not among them."""
    ended, _, answer = texts["succeed"].rpartition(_GONE)
    promote = texts["promote"]
    assert not answer
    inner, _, _ = promote.partition("select target from first where id not in")
    inner = _replaced(inner, f"select distinct {_GIVEN}", "select distinct target from gone")
    inner = _replaced(
        inner,
        "where h.target = f.target and",
        "where h.id not in (select id from gone) and h.target = f.target and",
    )
    inner = _replaced(inner, "with freed as", ", freed as")
    texts["succeed"] = f"{ended}{inner}{_GONE}"
    texts["promote"] = (
        "select target from json_to_recordset(:rows::json) as g(target text) where false"
    )


def drawn_with_the_first_winner(texts: dict[str, str]) -> None:
    """A claim's token and time are drawn when one job is won and others are not locked yet: until
    then such a job can be put behind a holder, who ends, and promotes it. That takes two other
    transactions in between: on a machine that is busy; here the claim waits for them."""
    first = "where exists (select from winner where known)"
    drawn = _replaced(texts["claim"], _ALL_WON, first)
    texts["claim"] = _replaced(drawn, _TOKEN, f"{_TOKEN}, pg_sleep({_BUSY_SECONDS})")


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"there is no {old!r}"
    return text.replace(old, new)


@contextlib.contextmanager
def planted(bug: Any) -> Iterator[None]:
    """For databases that are opened within: statements are filled in when they are first used."""

    def loaded(package: str, values: dict[str, str]) -> dict[str, str]:
        texts = load_statements(package, values)
        bug(texts)
        return texts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "load_statements", loaded)
        session._of_any_schema.cache_clear()
        try:
            yield
        finally:
            session._of_any_schema.cache_clear()

"""Bugs that only concurrent transactions show, planted in the statements for PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from freehold.store.postgres import session
from freehold.store.sqlfiles import load_statements, with_stages

_LOCK = "pg_try_advisory_xact_lock(hashtextextended(name, @schema_key@ + 1))"
_LOCKED = (
    "coalesce(string_to_array(current_setting('freehold.limits', true), chr(10)), array[]::text[])"
)
_COUNT = "@schema@.count_leased(name, max_leases)"
_GIVEN = "target from json_to_recordset(:rows::json) as g(target text)"
_RESULT = "select id from held"
_TOKEN = "nextval('@schema@.lease_token') as token"
#: Returns when two attempts have ended since it was called, or after 20 looks. Each look has a
#: snapshot of its own.
OTHERS_END = """
create or replace function freehold.others_end() returns void language plpgsql as $$
declare began timestamptz := clock_timestamp();
begin
    for look in 1..20 loop
        exit when (select count(*) from freehold.history where finished_at > began) >= 2;
        perform pg_sleep(0.002);
    end loop;
end $$"""
_ALL_WON = "where (select count(*) from winner where known) > 0"


def counted_before_the_lock(texts: dict[str, str]) -> None:
    """One statement takes the lock and counts: its snapshot is older than its lock."""
    texts["try_limits"] = _replaced(texts["try_limits"], _LOCK, "true")
    lock = _LOCK.replace("(name,", "(n,")
    in_claim = _replaced(
        texts["claim"], _LOCKED, f"array(select n from unnest({_LOCKED}) n where {lock})"
    )
    seen = with_stages(
        "(select count(*)::integer from @schema@.job h where h.stage = {leased} "
        "and h.queue = name and h.lease_expires_at > (select @schema@.clock()))"
    )
    texts["claim"] = _replaced(in_claim, _COUNT, seen)


def promoted_with_the_ending(texts: dict[str, str]) -> None:
    """The statement that removes the holder promotes the next job of its own snapshot. A job that
    became a follower while the statement waited for its lock is not in it."""
    ended, _, rest = texts["succeed"].rpartition(_RESULT)
    promote = texts["promote"]
    assert not rest
    inner, _, _ = promote.partition("select target from first where id not in")
    inner = _replaced(inner, f"select distinct {_GIVEN}", "select distinct target from gone")
    inner = _replaced(
        inner,
        "where h.target = f.target and",
        "where h.id not in (select id from gone) and h.target = f.target and",
    )
    inner = _replaced(inner, "with freed as", ", freed as")
    texts["succeed"] = f"{ended}{inner}{_RESULT}"
    texts["promote"] = (
        "select target from json_to_recordset(:rows::json) as g(target text) where false"
    )


def drawn_with_the_first_winner(texts: dict[str, str]) -> None:
    """A claim draws its token and time when it has won one job and has not locked the others yet.
    Meanwhile another job can become a follower of a holder, which ends and promotes it. That takes
    two other transactions, which a busy machine may run in between; here the claim waits for them,
    by the function that Passed creates."""
    first = "where exists (select from winner where known)"
    drawn = _replaced(texts["claim"], _ALL_WON, first)
    texts["claim"] = _replaced(drawn, _TOKEN, f"{_TOKEN}, @schema@.others_end()")


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"there is no {old!r}"
    return text.replace(old, new)


@contextlib.contextmanager
def planted(bug: Any) -> Iterator[None]:
    """For databases that are opened within the block: statements are loaded at first use."""

    def loaded(package: str, values: dict[str, str]) -> dict[str, str]:
        texts = load_statements(package, values)
        bug(texts)
        return texts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "load_statements", loaded)
        session._templates.cache_clear()
        try:
            yield
        finally:
            session._templates.cache_clear()

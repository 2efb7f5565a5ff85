"""ctx.transaction when the lease is lost, or the commit's answer: of two owners of one job
exactly one's writes exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freehold import LeaseLost, OutcomeUnknown
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.store import Store
from freehold.store.types import AttemptEnd
from freehold.worker.execution.context import Context
from tests.worker.workshop import AT_ONCE, Workshop, entry, handler, kinds, writes


@pytest.mark.usefixtures("unnoticed")
@kinds
@pytest.mark.requirement("P1")
def test_a_lease_that_expired_inside_the_transaction_rolls_it_back(
    workshop: Workshop, kind: str
) -> None:
    seen: list[bool] = []
    past = "'2000-01-01'" if workshop.is_postgres else "0"

    def expires(ctx: Any, execute: Callable[[str], object]) -> None:
        seen.append(ctx.lease.held)
        execute(entry("mine"))
        execute(workshop.named(f"update {{s}}job set lease_expires_at = {past}"))

    workshop.add(handler(kind, expires), retry=AT_ONCE)
    worker = workshop.run()
    assert seen == [True]
    assert workshop.ledger() == []
    assert worker.telemetry.total("stale_writes") == worker.telemetry.total("lost_leases") == 1


def _thief_finishes(workshop: Workshop, job_id: int) -> None:
    """Another owner, by the same means."""
    attempt = workshop.steal(job_id)
    transaction = workshop.app.database.transaction()
    transaction.begin().execute(entry("theirs"))
    ended = AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS, result=b'"theirs"'))
    assert Store(transaction.session).finish_within("thief", ended, None)
    transaction.commit()


def _check_that_only_the_thief_wrote(workshop: Workshop, job_id: int, seen: list[str]) -> None:
    report = workshop.job(job_id).report
    assert seen == ["LeaseLost"]
    assert workshop.ledger() == ["theirs"]
    assert report is not None
    assert (report.result, report.by) == ("theirs", "thief")


@pytest.mark.usefixtures("unnoticed")
@kinds
@pytest.mark.requirement("S0.3", "S0.17", "S3.4")
def test_of_two_owners_only_the_later_ones_writes_exist(workshop: Workshop, kind: str) -> None:
    """The lease is stolen before the transaction begins, unnoticed."""
    seen: list[str] = []
    inner = handler(kind, writes)

    async def coroutine(ctx: Context) -> None:
        _thief_finishes(workshop, ctx.job.job_id)
        assert ctx.lease.held  # as far as it knows
        try:
            await inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)
        assert not ctx.lease.held

    def function(ctx: Context) -> None:
        _thief_finishes(workshop, ctx.job.job_id)
        try:
            inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)
        assert not ctx.lease.held

    job_id = workshop.add(coroutine if kind == "coroutine" else function, retry=AT_ONCE)
    workshop.run()
    _check_that_only_the_thief_wrote(workshop, job_id, seen)


@pytest.mark.usefixtures("unnoticed")
@kinds
@pytest.mark.requirement("S0.3", "P1", "S3.4")
@pytest.mark.parametrize("finishes", [True, False], ids=["finished", "running"])
def test_a_job_stolen_inside_the_transaction_leaves_nothing_of_it(
    postgres_workshop: Workshop, kind: str, finishes: bool
) -> None:
    """SQLite cannot lose a lease here to anybody: whoever has the transaction open has the pen."""
    workshop = postgres_workshop
    seen: list[str] = []

    def is_robbed(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        if finishes:
            _thief_finishes(workshop, ctx.job.job_id)
        else:
            workshop.steal(ctx.job.job_id)

    inner = handler(kind, is_robbed)

    async def coroutine(ctx: Context) -> None:
        try:
            await inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)

    def function(ctx: Context) -> None:
        try:
            inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)

    job_id = workshop.add(coroutine if kind == "coroutine" else function, retry=AT_ONCE)
    workshop.run()
    if finishes:
        _check_that_only_the_thief_wrote(workshop, job_id, seen)
    else:
        assert seen == ["LeaseLost"]
        assert workshop.ledger() == []
        lease = workshop.job(job_id).lease
        assert lease is not None
        assert lease.owner == "thief"


# -- nobody knows ----------------------------------------------------------------------------


@pytest.fixture
def answers_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit happens, and its answer does not arrive."""
    for name in (
        "postgres.transaction.PostgresTransaction",
        "postgres.transaction.AsyncPostgresTransaction",
        "sqlite.transaction.SqliteTransaction",
        "sqlite.transaction.AsyncFileTransaction",
    ):
        path = f"freehold.store.{name}.commit"
        monkeypatch.setattr(path, _without_answer(path, asynchronous="Async" in name))


def _without_answer(path: str, *, asynchronous: bool) -> Callable[[Any], Any]:
    module, owner, method = path.rsplit(".", 2)
    commit = getattr(getattr(__import__(module, fromlist=[owner]), owner), method)

    def blocking(self: Any) -> None:
        commit(self)
        raise OutcomeUnknown("lost on the way")

    async def awaited(self: Any) -> None:
        await commit(self)
        raise OutcomeUnknown("lost on the way")

    return awaited if asynchronous else blocking


@kinds
@pytest.mark.usefixtures("answers_are_lost")
def test_a_commit_whose_answer_was_lost_is_not_followed_by_another_end(
    workshop: Workshop, kind: str
) -> None:
    job_id = workshop.add(handler(kind, writes, result=1), retry=AT_ONCE)
    worker = workshop.run()
    assert workshop.ledger() == ["mine"]
    assert workshop.job(job_id).state == "succeeded"
    assert worker.telemetry.total("stale_writes") == 0
    assert len(worker.hand) == 0


@kinds
@pytest.mark.requirement("S0.9")
def test_a_connection_that_breaks_in_the_commit_leaves_the_job_to_its_lease(
    postgres_workshop: Workshop, kind: str
) -> None:
    workshop = postgres_workshop
    workshop.sql(
        "create function break() returns trigger language plpgsql as "
        "$$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$"
    )
    workshop.sql(
        "create constraint trigger breaks after insert on ledger "
        "deferrable initially deferred for each row execute function break()"
    )
    job_id = workshop.add(handler(kind, writes), retry=AT_ONCE)
    worker = workshop.run()
    assert workshop.ledger() == []
    assert workshop.job(job_id).state == "running" or workshop.job(job_id).state == "assigned"
    assert len(worker.hand) == 0  # nobody renews it any more
    workshop.sql("drop trigger breaks on ledger")
    workshop.expire(job_id)
    workshop.run()
    assert workshop.ledger() == ["mine"]
    assert workshop.job(job_id).lost == 1

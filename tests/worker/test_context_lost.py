"""ctx.transaction when the lease or the response to the commit is lost: of two owners of one job
exactly one has its writes committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freehold import LeaseLost, OutcomeUnknown
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.store import Store
from freehold.store.types import AttemptEnd
from freehold.worker.execution.context import Context
from tests.worker.local_worker import AT_ONCE, LocalWorker, entry, handler, kinds, put, writes


@pytest.mark.usefixtures("slow_renewer")
@kinds
@pytest.mark.requirement("P1")
def test_a_lease_that_expired_inside_the_transaction_rolls_it_back(
    local_worker: LocalWorker, kind: str
) -> None:
    seen: list[bool] = []
    past = "'2000-01-01'" if local_worker.is_postgres else "0"

    def expires(ctx: Any, execute: Callable[[str], object]) -> None:
        seen.append(ctx.lease.held)
        execute(entry("mine"))
        execute(local_worker.named(f"update {{s}}job set lease_expires_at = {past}"))

    local_worker.add(handler(kind, expires), retry=AT_ONCE)
    worker = local_worker.run()
    assert seen == [True]
    assert local_worker.ledger() == []
    assert worker.telemetry.total("stale_writes") == worker.telemetry.total("lost_leases") == 1


def _thief_finishes(local_worker: LocalWorker, job_id: int) -> None:
    """Another owner finishes the job in a transaction, too."""
    attempt = local_worker.steal(job_id)
    transaction = local_worker.app._database.transaction()
    transaction.begin().execute(entry("theirs"))
    ended = AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS, result=b'"theirs"'))
    assert Store(transaction.session).finish_within("thief", ended, None)
    transaction.commit()


def _check_that_only_the_thief_wrote(
    local_worker: LocalWorker, job_id: int, seen: list[str]
) -> None:
    report = local_worker.job(job_id).report
    assert seen == ["LeaseLost"]
    assert local_worker.ledger() == ["theirs"]
    assert report is not None
    assert (report.result, report.finished_by) == ("theirs", "thief")


@pytest.mark.usefixtures("slow_renewer")
@kinds
@pytest.mark.requirement("S0.3", "S0.17", "S3.4")
def test_only_the_later_of_two_owners_has_its_writes_committed(
    local_worker: LocalWorker, kind: str
) -> None:
    """The lease is stolen before the transaction begins, unnoticed."""
    seen: list[str] = []
    inner = handler(kind, writes)

    async def coroutine(ctx: Context) -> None:
        _thief_finishes(local_worker, ctx.job.job_id)
        assert ctx.lease.held  # as far as it knows
        try:
            await inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)
        assert not ctx.lease.held

    def function(ctx: Context) -> None:
        _thief_finishes(local_worker, ctx.job.job_id)
        try:
            inner(ctx)
        except LeaseLost as lost:
            seen.append(type(lost).__name__)
        assert not ctx.lease.held

    job_id = local_worker.add(coroutine if kind == "coroutine" else function, retry=AT_ONCE)
    local_worker.run()
    _check_that_only_the_thief_wrote(local_worker, job_id, seen)


@pytest.mark.usefixtures("slow_renewer")
@kinds
@pytest.mark.requirement("S0.3", "P1", "S3.4")
@pytest.mark.parametrize("finishes", [True, False], ids=["finished", "running"])
def test_a_job_stolen_inside_the_transaction_leaves_nothing_of_it(
    postgres_local_worker: LocalWorker, kind: str, finishes: bool
) -> None:
    """Not on SQLite, where the open transaction holds the write lock and no lease can be lost."""
    local_worker = postgres_local_worker
    seen: list[str] = []

    def loses_its_lease(ctx: Any, execute: Callable[[str], object]) -> None:
        execute(entry("mine"))
        if finishes:
            _thief_finishes(local_worker, ctx.job.job_id)
        else:
            local_worker.steal(ctx.job.job_id)

    inner = handler(kind, loses_its_lease)

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

    job_id = local_worker.add(coroutine if kind == "coroutine" else function, retry=AT_ONCE)
    local_worker.run()
    if finishes:
        _check_that_only_the_thief_wrote(local_worker, job_id, seen)
    else:
        assert seen == ["LeaseLost"]
        assert local_worker.ledger() == []
        lease = local_worker.job(job_id).lease
        assert lease is not None
        assert lease.owner == "thief"


# -- unknown outcome -------------------------------------------------------------------------


@pytest.fixture
def responses_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit happens, and its response does not arrive."""
    for name in (
        "postgres.handler_transaction.PostgresTransaction",
        "postgres.handler_transaction.AsyncPostgresTransaction",
        "sqlite.handler_transaction.SqliteTransaction",
        "sqlite.handler_transaction.AsyncFileTransaction",
    ):
        path = f"freehold.store.{name}.commit"
        monkeypatch.setattr(path, _without_response(path, asynchronous="Async" in name))


def _without_response(path: str, *, asynchronous: bool) -> Callable[[Any], Any]:
    module, owner, method = path.rsplit(".", 2)
    commit = getattr(getattr(__import__(module, fromlist=[owner]), owner), method)

    def blocking(self: Any) -> None:
        commit(self)
        raise OutcomeUnknown("the response was lost")

    async def awaited(self: Any) -> None:
        await commit(self)
        raise OutcomeUnknown("the response was lost")

    return awaited if asynchronous else blocking


@kinds
@pytest.mark.usefixtures("responses_are_lost")
def test_no_second_outcome_follows_a_commit_with_a_lost_response(
    local_worker: LocalWorker, kind: str
) -> None:
    job_id = local_worker.add(handler(kind, writes, result=1), retry=AT_ONCE)
    worker = local_worker.run()
    assert local_worker.ledger() == ["mine"]
    assert local_worker.job(job_id).state == "succeeded"
    assert worker.telemetry.total("stale_writes") == 0
    assert len(worker.leases) == 0


@kinds
@pytest.mark.requirement("S0.9")
def test_a_connection_that_breaks_in_the_commit_leaves_the_job_to_its_lease(
    postgres_local_worker: LocalWorker, kind: str
) -> None:
    local_worker = postgres_local_worker
    local_worker.sql(
        "create function break() returns trigger language plpgsql as "
        "$$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$"
    )
    local_worker.sql(
        "create constraint trigger breaks after insert on ledger "
        "deferrable initially deferred for each row execute function break()"
    )
    job_id = local_worker.add(handler(kind, writes), retry=AT_ONCE)
    worker = local_worker.run()
    assert local_worker.ledger() == []
    assert (
        local_worker.job(job_id).state == "running" or local_worker.job(job_id).state == "assigned"
    )
    assert len(worker.leases) == 0  # it is no longer renewed
    local_worker.sql("drop trigger breaks on ledger")
    local_worker.expire(job_id)
    local_worker.run()
    assert local_worker.ledger() == ["mine"]
    assert local_worker.job(job_id).lost_attempts == 1


def _books_twice(kind: str, note: Callable[[Exception], None]) -> Callable[..., Any]:
    """A handler that repeats its block after an error."""

    async def coroutine(ctx: Context) -> None:
        for _ in range(2):
            try:
                async with ctx.transaction(step="book") as connection:
                    if connection:
                        await put(connection, entry("mine"))
                return
            except (OutcomeUnknown, LeaseLost) as error:
                note(error)

    def function(ctx: Context) -> None:
        for _ in range(2):
            try:
                with ctx.transaction(step="book") as connection:
                    if connection:
                        connection.execute(entry("mine"))
                return
            except (OutcomeUnknown, LeaseLost) as error:
                note(error)

    return coroutine if kind == "coroutine" else function


@kinds
@pytest.mark.usefixtures("responses_are_lost")
@pytest.mark.parametrize("catches", [True, False], ids=["caught", "not_caught"])
@pytest.mark.requirement("N8")
def test_a_step_whose_commit_has_a_lost_response_writes_once(
    local_worker: LocalWorker, kind: str, catches: bool
) -> None:
    """The handler may repeat its block: this attempt writes nothing more, the next reads the
    step."""
    seen: list[str] = []

    def note(error: Exception) -> None:
        seen.append(type(error).__name__)
        if not catches:
            raise error

    job_id = local_worker.add(_books_twice(kind, note), retry=AT_ONCE)
    worker = local_worker.run()
    assert seen == ["OutcomeUnknown", *["LeaseLost"] * catches]
    assert local_worker.ledger() == ["mine"]
    assert local_worker.job(job_id).lease is not None
    assert len(worker.leases) == 0  # it is no longer renewed
    local_worker.expire(job_id)
    local_worker.run()
    assert local_worker.ledger() == ["mine"]
    job = local_worker.job(job_id)
    assert (job.state, job.attempt, job.lost_attempts) == ("succeeded", 2, 1)

"""A stop that arrives while the fenced transaction commits, and coroutines that share a loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from freehold import Freehold, Retry
from freehold.model.job import Attempt
from freehold.store.sqlite.database import SqliteDatabase
from freehold.telemetry import Telemetry
from freehold.worker.execution.context import Context
from freehold.worker.execution.fenced_transaction import FencedTransactions
from freehold.worker.held_leases import HeldLease, HeldLeases, Phase, StopReason
from tests.stores import SqliteUnderTest
from tests.worker.local_worker import LocalWorker, entry, handler


class _SlowCommit:
    """The database with commits that wait until `proceed` is set."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.reached, self.proceed = asyncio.Event(), asyncio.Event()

    def transaction(self) -> Any:
        raise AssertionError

    def async_transaction(self) -> Any:
        transaction = self._database.async_transaction()
        commit = transaction.commit

        async def slowly() -> None:
            self.reached.set()
            await self.proceed.wait()
            await commit()

        transaction.commit = slowly  # type: ignore[method-assign]
        return transaction


def _add_lease(attempt: Attempt, leases: HeldLeases) -> HeldLease:
    lease = HeldLease(attempt, valid_until=float("inf"))
    lease.move_to(Phase.RUNNING)
    leases.add(lease)
    return lease


@pytest.mark.requirement("S0.3")
def test_a_stop_during_the_commit_takes_effect_after_it() -> None:
    sqlite, leases = SqliteUnderTest(), HeldLeases()
    job_id = sqlite.add()
    lease = _add_lease(sqlite.claim_one(), leases)

    async def scenario() -> None:
        database = _SlowCommit(sqlite.database)  # type: ignore[arg-type]
        transactions = FencedTransactions(
            database, "w1", leases, Telemetry(), asyncio.get_running_loop()
        )

        async def attempt() -> None:
            async with transactions.open(lease, "kept"):
                pass

        running = asyncio.create_task(attempt())
        await database.reached.wait()
        running.cancel()
        await asyncio.sleep(0)
        assert lease.phase is Phase.COMMITTING  # the renewer leaves the decision to the store
        database.proceed.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
    assert lease.phase is Phase.FINISHED
    assert len(leases) == 0
    assert sqlite.state(job_id) == "succeeded"


def test_a_handler_that_has_lost_its_lease_opens_no_transaction() -> None:
    sqlite, leases = SqliteUnderTest(), HeldLeases()
    sqlite.add()
    lease = _add_lease(sqlite.claim_one(), leases)
    lease.stop(StopReason.LEASE_LOST)
    loop = asyncio.new_event_loop()
    transactions = FencedTransactions(sqlite.database, "w1", leases, Telemetry(), loop)
    with pytest.raises(Exception, match="no longer belongs"), transactions.open(lease, None):
        raise AssertionError
    loop.close()


@pytest.mark.requirement("S3.5")
def test_a_function_past_its_timeout_commits_nothing(local_worker: LocalWorker) -> None:
    def overstays(ctx: Any, execute: Any) -> None:
        execute(entry("mine"))
        while ctx.stop_reason is None:
            pass

    job_id = local_worker.add(
        handler("function", overstays), timeout=0.1, retry=Retry(max_attempts=1)
    )
    local_worker.run()
    assert local_worker.ledger() == []
    assert local_worker.job(job_id).state == "failed"


@pytest.mark.requirement("S3.7")
@pytest.mark.parametrize("where", ["memory", "file"])
def test_transactions_of_many_coroutines_take_turns_on_sqlite(where: str, tmp_path: Any) -> None:
    app = Freehold("sqlite://:memory:" if where == "memory" else str(tmp_path / "jobs.db"))
    inside: list[int] = []

    @app.task(name="turn")
    async def turn(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            inside.append(ctx.job.job_id)
            connection.execute("select 1")
            await asyncio.sleep(0.005)  # others run meanwhile, and wait for the write lock
            assert inside.pop() == ctx.job.job_id

    app.migrate()
    jobs = [turn.enqueue() for _ in range(20)]
    assert app.run_worker(until_idle=True, concurrency=10) == 0
    assert {job.read().state for job in jobs} == {"succeeded"}
    assert inside == []
    app.close()

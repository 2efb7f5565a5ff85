"""A flow whose act the database refuses: sweeps try it again now and then, and end all the same."""

from __future__ import annotations

import asyncio

import pytest

from freehold.exit_codes import EXIT_DONE
from tests.testing.virtual_app import VirtualApp


@pytest.fixture
def refusing(virtual: VirtualApp) -> VirtualApp:
    """A canceled batch, whose member the database refuses to cancel."""
    with virtual.database._inner._engine.transaction() as connection:
        connection.execute(
            "create trigger refused_here before insert on history when new.state = 'canceled' "
            "begin select raise(abort, 'refused here'); end"
        )

    @virtual.app.task(name="member", queue="closed")
    async def member() -> None: ...

    virtual.app.batch([member.prepare()]).cancel()
    return virtual


def test_a_worker_with_until_idle_ends(refusing: VirtualApp) -> None:
    async def scenario() -> int:
        async with asyncio.timeout(60):
            return await refusing.worker(until_idle=True, queues=("open",)).run()

    assert refusing.run(scenario()) == EXIT_DONE


def test_sweeps_keep_their_pace(refusing: VirtualApp) -> None:
    async def scenario() -> None:
        async with refusing.working(queues=("open",)):
            await asyncio.sleep(20)

    refusing.run(scenario())
    assert 10 <= len(refusing.database.times("due_flows")) <= 30

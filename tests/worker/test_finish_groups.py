"""Which outcomes are written together: ends other than success by themselves, and soon."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from freehold.errors import StoreUnavailable
from freehold.model.job import Attempt, ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.statements import AsyncSession, Rows, StatementGroup
from freehold.store.store import AsyncStore
from freehold.store.types import Advanced, AttemptEnd, Finished
from freehold.telemetry import Telemetry
from freehold.worker import finisher
from freehold.worker.finisher import Finisher
from freehold.worker.held_leases import HeldLease, HeldLeases
from freehold.worker.wakeups import Wakeups
from tests.stores import StoreUnderTest

#: "s" succeeds, "f" fails.
KINDS = {"s": OutcomeKind.SUCCESS, "f": OutcomeKind.ERROR}


class Recorder:
    """The store, with a record of each group. While it writes a group, more outcomes arrive."""

    def __init__(self, store: AsyncStore, arrivals: list[str]) -> None:
        self._store = store
        self._arrivals = arrivals
        self.finisher: Finisher
        self.attempts: list[Attempt] = []
        self.groups: list[str] = []

    async def advance_flows(self, flows: Sequence[int]) -> Advanced:
        return await self._store.advance_flows(flows)

    def arrive(self) -> None:
        """The outcomes of the next arrival."""
        until = asyncio.get_running_loop().time() + 60
        for mark in self._arrivals.pop(0) if self._arrivals else "":
            attempt = self.attempts.pop()
            error = ErrorInfo("E", "failed") if mark == "f" else None
            outcome = Outcome(kind=KINDS[mark], error=error, ran_seconds=0.0)
            self.finisher.submit(HeldLease(attempt, until), outcome)

    async def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        marks = {kind: mark for mark, kind in KINDS.items()}
        self.groups.append("".join(marks[each.outcome.kind] for each in ended))
        self.arrive()
        return await self._store.finish(owner, ended)


@pytest.mark.requirement("P11")
@pytest.mark.parametrize(
    ("seconds", "limit", "groups"),
    [
        (60.0, 9, ["s", "ss", "s", "s", "ffff"]),
        (60.0, 2, ["s", "ff", "sss", "ff", "s"]),
        (0.0, 9, ["f", "sss", "ff", "ss", "f"]),
    ],
    ids=["until no success waits", "until they are many", "until the time is over"],
)
def test_failures_wait_for_each_other_beside_successes(
    store: StoreUnderTest,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    limit: int,
    groups: list[str],
) -> None:
    monkeypatch.setattr(finisher, "_OTHERS_SECONDS", seconds)
    monkeypatch.setattr(finisher, "_OTHERS_LIMIT", limit)
    assert written(store, ["fs", "sfs", "fs", "sf"]) == groups


def test_a_failure_alone_is_written_at_once(store: StoreUnderTest) -> None:
    assert written(store, ["f", "f"]) == ["f", "f"]


def test_successes_are_not_refused_because_other_ends_could_not_be_written(
    store: StoreUnderTest,
) -> None:
    """They are another transaction. Sent once more, they would be reported as stale."""
    refusing = AsyncStore(RefusingOnce(store.awaited.session))
    written(store, ["s" + "f" * 100, "s"], refusing)


class RefusingOnce:
    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self._has_refused = False

    async def execute(self, group: StatementGroup) -> list[Rows]:
        if group.statements[0].name == "transition" and not self._has_refused:
            self._has_refused = True
            raise StoreUnavailable("refused once by the test")
        return await self._session.execute(group)


def written(
    store: StoreUnderTest, arrivals: list[str], through: AsyncStore | None = None
) -> list[str]:
    """The groups in which these outcomes are written. All of them are, once."""
    count = sum(map(len, arrivals))
    for _ in range(count):
        store.add()
    telemetry = Telemetry()
    recorder = Recorder(through or store.awaited, list(arrivals))
    recorder.attempts = [store.claim_one() for _ in range(count)]

    async def write_all() -> None:
        recorder.finisher = Finisher(
            recorder, "w1", HeldLeases(), telemetry, Wakeups(), lambda: 0.5
        )
        recorder.arrive()
        running = asyncio.create_task(recorder.finisher.run())
        await recorder.finisher.flushed()
        running.cancel()
        await store.database.aclose()

    asyncio.run(write_all())
    assert (telemetry.total("finished"), telemetry.total("stale_writes")) == (count, 0)
    return recorder.groups

"""The way between a machine and the store: it delays, fails, doubles, and is cut.

    sent -> (delay) -> executed -> (delay) -> answered

A batch can fail before it was executed, and its sender is told so, or only that nobody knows;
it can fail after it was executed, and the answer is lost; it can be executed twice; it can be
given up by its sender and arrive all the same, much later. A machine that is cut off is refused,
or hears nothing until it gives up; what it sent meanwhile may arrive when the way is free again.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from freehold.clock import VirtualClock
from freehold.errors import OutcomeUnknown, StoreError, StoreUnavailable
from freehold.lab.simulation.adversarial_claims import CLAIMS, AdversarialClaims
from freehold.lab.simulation.machine import Machine
from freehold.store.database import AsyncTransaction, Database
from freehold.store.statements import AsyncSession, Conflict, Rows, Statement, StatementGroup

_MICROS = 1_000_000
#: Where a machine can be ambushed.
ENDINGS = frozenset({"succeed", "settle"})
SUCCESSES = frozenset({"succeed"})
RENEWALS = frozenset({"renew"})
#: What was given up arrives about this much later.
LATE_SECONDS = 3.0
#: Some wait until their job is claimed again, if that happens within this time, and arrive while
#: that attempt may run; some arrive when their lease has just run out, and nobody has seen it.
_WHEN_RECLAIMED = 0.6
_RECLAIM_SECONDS = 8.0
_JUST_AFTER_SECONDS = (0.02, 0.02, 0.3)
_WHEN_EXPIRED = 0.25
_EXPIRED_SECONDS = (1.5, 2.6)
#: The share of what is sent into a cut line and arrives when it is mended.
_STUCK = 0.3
#: What was sent to a store that was away arrives so soon when it is back.
_BACK_SECONDS = 0.4
#: An operator who was told nothing asks again; that its first word comes after its second would
#: only say that the last word counts.
_IN_TIME = frozenset({"pause_queue", "resume_queue"})
#: A connection that hears nothing is given up after this long, as by a TCP timeout.
GIVE_UP_SECONDS = 2.5
#: Hints arrive a little later, and many as one: a fleet that is woken by every write is slow.
_HINT_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class LinkNoise:
    """How often each thing happens to a batch; shares of all batches."""

    fail_before: float = 0.0
    unknown_before: float = 0.0
    fail_after: float = 0.0
    doubled: float = 0.0
    slow: float = 0.0
    late: float = 0.0


NO_NOISE = LinkNoise()


class Network:
    """What all lines share."""

    def __init__(
        self,
        database: Database,
        clock: VirtualClock,
        seed: str,
        seen: Callable[[Machine, StatementGroup, list[Rows]], None],
        told: Callable[[Machine, str, str], None],
    ) -> None:
        self.database = database
        self.clock = clock
        self.noise = NO_NOISE
        self._seed = seed
        self._seen = seen
        self.reclaims = AdversarialClaims()
        #: Does something about a job whose end is on its way.
        self.interrupt: Callable[[int], None] | None = None
        #: Hears of every fault that really happened: whose, which, and to what.
        self.told = told
        #: Until when nobody can reach the store, by the world's clock; and how that shows.
        self.away_until = 0
        self.hangs_while_away = False
        self.back = asyncio.Event()
        self._lines: list[Link] = []
        #: What was given up by its sender, and is still on its way.
        self.arriving: set[asyncio.Task[None]] = set()

    def seen(self, host: Machine, batch: StatementGroup, answers: list[Rows]) -> None:
        """A batch was executed; and by whom it was sent."""
        self._seen(host, batch, answers)
        self.reclaims.seen(batch, answers)

    def line(self, host: Machine, *, is_deaf: bool = False) -> Link:
        line = Link(self, host, random.Random(f"{self._seed}/{host.name}"), is_deaf)
        self._lines.append(line)
        return line

    # -- the store itself --------------------------------------------------------------------

    @property
    def is_away(self) -> bool:
        return self.clock.micros < self.away_until

    def go_away(self, until: int, *, hangs: bool) -> None:
        self.away_until, self.hangs_while_away = until, hangs
        self.back.clear()
        for line in self._lines:
            line.tell_listener(None)

    def come_back(self) -> None:
        if not self.away_until:
            return
        self.away_until = 0
        self.back.set()
        for line in self._lines:
            line.tell_listener("")


class Link:
    """One machine's database: the real one, seen through a line that can fail."""

    def __init__(
        self, network: Network, host: Machine, chance: random.Random, is_deaf: bool
    ) -> None:
        self._network = network
        self._host = host
        self._chance = chance
        self._inner = network.database
        self._open: list[_LinkTransaction] = []
        self._under_way: dict[int, StatementGroup] = {}
        self._sent = 0
        #: Notifications never arrive, as behind some connection poolers: it has to poll.
        self._is_deaf = is_deaf
        self._has_hint = False
        self._heard: Callable[[str | None], object] | None = None

    def __getattr__(self, name: str) -> Any:
        """What nobody simulates: the address, migrations, blocking sessions."""
        return getattr(self._inner, name)

    # -- batches -----------------------------------------------------------------------------

    def async_session(self) -> AsyncSession:
        return _LinkSession(self, self._inner.async_session())

    async def carry(self, batch: StatementGroup, session: AsyncSession) -> list[Rows]:
        self._sent += 1
        number = self._sent
        self._under_way[number] = batch
        try:
            fault = self._fault(batch)
            await self._ambushed(batch, ENDINGS, SUCCESSES, RENEWALS)
            fault = fault or self._interrupted(batch)
            await self._way_there(batch, fault)
            answers = await session.execute(batch)
        finally:
            self._under_way.pop(number, None)
        self._network.seen(self._host, batch, answers)
        await self._ambushed(batch, CLAIMS)
        if fault == "doubled":
            await self._again(batch, session)
        await self._way_back(batch, fault)
        return answers

    async def _ambushed(self, batch: StatementGroup, *moments: frozenset[str]) -> None:
        ambush = self._host.ambush
        if ambush is None or ambush.statements not in moments:
            return
        if any(statement.name in ambush.statements for statement in batch.statements):
            self._host.ambush = None
            ambush.spring(batch, self._network)
            await asyncio.sleep(0)  # from here on it is dead or frozen

    def _fault(self, batch: StatementGroup) -> str:
        noise, draw = self._network.noise, self._chance.random()
        for kind in ("fail_before", "unknown_before", "fail_after", "doubled", "slow", "late"):
            draw -= getattr(noise, kind)
            if draw < 0:
                if kind in ("doubled", "unknown_before", "late") and not batch.writes:
                    return ""
                if kind == "late" and any(s.name in _IN_TIME for s in batch.statements):
                    return ""
                if kind == "doubled" and any(map(_makes_without_key, batch.statements)):
                    return ""
                self._network.told(self._host, kind, names(batch))
                return kind
        return ""

    def _interrupted(self, batch: StatementGroup) -> str:
        interrupt, job_id = self._network.interrupt, _whose_end(batch)
        if interrupt is None or job_id is None:
            return ""
        interrupt(job_id)
        self._network.told(self._host, "slow", names(batch))
        return "slow"

    async def _way_there(self, batch: StatementGroup, fault: str) -> None:
        await asyncio.sleep(self._delay(fault))
        await self._refuse_if_cut_off(batch, sent=False)
        if fault == "fail_before":
            raise StoreUnavailable("simulated: the connection was refused")
        if fault == "unknown_before":
            raise OutcomeUnknown("simulated: the connection broke; nothing was written")
        if fault == "late":
            self._arrives_later(batch, self._chance.uniform(0.2, 1.5) * LATE_SECONDS)
            raise OutcomeUnknown("simulated: no answer came in time")

    async def _way_back(self, batch: StatementGroup, fault: str) -> None:
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._delay(""))
        await self._refuse_if_cut_off(batch, sent=True)
        if fault == "fail_after":
            raise _broken(batch)

    def _delay(self, fault: str) -> float:
        if fault == "slow":
            return self._chance.uniform(0.05, 0.8)
        if fault == "late":
            return self._chance.uniform(0.1, 0.4)
        return self._chance.uniform(0.0005, 0.004)

    @property
    def _is_cut_off(self) -> bool:
        return self._network.clock.micros < self._cut_off_until

    @property
    def is_store_away(self) -> bool:
        return self._network.is_away

    @property
    def _cut_off_until(self) -> int:
        return max(self._host.cut_off_until, self._network.away_until)

    @property
    def _hangs(self) -> bool:
        if self._network.clock.micros < self._host.cut_off_until:
            return self._host.hangs_while_cut_off
        return self._network.hangs_while_away

    async def _refuse_if_cut_off(self, batch: StatementGroup, *, sent: bool) -> None:
        if not self._is_cut_off:
            return
        left = (self._cut_off_until - self._network.clock.micros) / _MICROS
        if not sent and batch.writes and self._chance.random() < _STUCK:
            if self._network.is_away:
                self._arrives_when_back(batch)
            else:
                self._arrives_later(batch, left + self._chance.uniform(0.0, 0.5), least=left)
            sent = True
        await asyncio.sleep(min(left, GIVE_UP_SECONDS) if self._hangs else 0.02)
        self._network.told(self._host, "cut_off", names(batch))
        raise _broken(batch) if sent else StoreUnavailable("simulated: no way to the store")

    def _arrives_later(self, batch: StatementGroup, seconds: float, least: float = 0.0) -> None:
        """Its sender has given it up; nobody hears the answer."""
        draw = self._chance.random()
        is_awaited = draw < _WHEN_RECLAIMED and not least
        if is_awaited:
            seconds = self._chance.choice(_JUST_AFTER_SECONDS)
        elif draw < _WHEN_RECLAIMED + _WHEN_EXPIRED:
            seconds = max(least, self._chance.uniform(*_EXPIRED_SECONDS))

        async def until_then() -> None:
            if is_awaited:
                await self._network.reclaims.of(batch, _RECLAIM_SECONDS)
            await asyncio.sleep(seconds)

        self._arrives_after(until_then(), batch)

    def _arrives_when_back(self, batch: StatementGroup) -> None:
        seconds = self._chance.uniform(0.0, _BACK_SECONDS)

        async def until_then() -> None:
            await self._network.back.wait()
            await asyncio.sleep(seconds)

        self._arrives_after(until_then(), batch)

    def _arrives_after(self, until_then: Coroutine[Any, Any, None], batch: StatementGroup) -> None:
        async def arrive() -> None:
            await until_then
            self._network.told(self._host, "arrived_late", names(batch))
            await self._again(batch, self._inner.async_session())

        loop = asyncio.get_running_loop()
        task = loop.create_task(arrive(), name=names(batch), context=contextvars.Context())
        self._network.arriving.add(task)
        task.add_done_callback(self._network.arriving.discard)

    async def _again(self, batch: StatementGroup, session: AsyncSession) -> None:
        with contextlib.suppress(Conflict, StoreError):
            self._network.seen(self._host, batch, await session.execute(batch))

    # -- the machine dies --------------------------------------------------------------------

    async def left_behind(self) -> None:
        """What a dead machine had sent may arrive; what it had open is rolled back."""
        await self.break_off()
        under_way, self._under_way = self._under_way, {}
        for batch in under_way.values():
            if batch.writes and not self._is_cut_off and self._chance.random() < 0.9:
                self._network.told(self._host, "sent_before_death", names(batch))
                self._arrives_later(batch, self._chance.uniform(0.3, 1.5) * LATE_SECONDS)

    async def break_off(self) -> None:
        """The server waits for nobody: an open transaction of a silent machine is rolled back."""
        for transaction in tuple(self._open):
            await transaction.break_off()

    # -- transactions of handlers ------------------------------------------------------------

    def async_transaction(self) -> AsyncTransaction:
        transaction = _LinkTransaction(self, self._inner.async_transaction())
        self._open.append(transaction)
        return transaction

    def commit_fails(self) -> bool:
        """Whether the answer to a commit is lost; the commit itself happens."""
        if self._is_cut_off or self._chance.random() < self._network.noise.fail_after:
            self._network.told(self._host, "fail_after", "a commit")
            return True
        return False

    def closed(
        self, transaction: _LinkTransaction, batches: list[tuple[StatementGroup, list[Rows]]]
    ) -> None:
        self._open.remove(transaction)
        for batch, answers in batches:
            self._network.seen(self._host, batch, answers)

    # -- hints -------------------------------------------------------------------------------

    async def listen(self, heard: Callable[[str | None], None]) -> None:
        """Hints arrive on the listener's own machine, a little later, many as one."""
        if self._is_deaf:
            await asyncio.Event().wait()
        loop = asyncio.get_running_loop()
        listener = contextvars.copy_context()

        def arrives(hint: str | None) -> None:
            self._has_hint = False
            if not self._is_cut_off:
                heard(hint)

        def rung(hint: str | None) -> None:
            if not self._has_hint:
                self._has_hint = True
                loop.call_later(_HINT_SECONDS, arrives, hint, context=listener)

        self._heard = lambda hint: loop.call_soon(heard, hint, context=listener)
        await self._inner.listen(rung)

    def tell_listener(self, hint: str | None) -> None:
        """That its connection broke (None), or that it is there again."""
        if self._heard is not None:
            self._heard(hint)


class _LinkSession:
    def __init__(self, line: Link, inner: AsyncSession) -> None:
        self._line = line
        self._inner = inner

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        return await self._line.carry(batch, self._inner)


class _LinkTransaction:
    """A handler's transaction: the server rolls it back when its machine is gone."""

    def __init__(self, line: Link, inner: AsyncTransaction) -> None:
        self._line = line
        self._inner = inner
        self._is_broken = False
        self._is_begun = False
        self.batches: list[tuple[StatementGroup, list[Rows]]] = []

    async def begin(self) -> Any:
        connection = await self._inner.begin()
        if self._is_broken:  # while it waited for its turn
            await self._inner.rollback()
            raise StoreUnavailable("simulated: the transaction was broken off")
        self._is_begun = True
        return connection

    @property
    def session(self) -> AsyncSession:
        if self._is_broken:
            raise StoreUnavailable("simulated: the transaction was broken off")
        return _RecordingTransaction(self._inner.session, self.batches)

    async def commit(self) -> None:
        if self._is_broken:
            raise StoreUnavailable("simulated: the transaction was broken off")
        await self._inner.commit()
        self._line.closed(self, self.batches)
        if self._line.commit_fails():
            raise OutcomeUnknown("simulated: the answer to the commit was lost")

    async def rollback(self) -> None:
        if not self._is_broken:
            await self._inner.rollback()
            self._line.closed(self, [])

    async def break_off(self) -> None:
        self._is_broken = True
        if self._is_begun:
            await self._inner.rollback()
        self._line.closed(self, [])


class _RecordingTransaction:
    def __init__(
        self, inner: AsyncSession, batches: list[tuple[StatementGroup, list[Rows]]]
    ) -> None:
        self._inner = inner
        self._batches = batches

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        answers = await self._inner.execute(batch)
        self._batches.append((batch, answers))
        return answers


def _broken(batch: StatementGroup) -> StoreError:
    """As the real sessions say it."""
    if batch.writes:
        return OutcomeUnknown("simulated: the connection broke during a write")
    return StoreUnavailable("simulated: the connection broke")


def _whose_end(batch: StatementGroup) -> int | None:
    """The first job whose owner ends it here in another way than by success."""
    rows = batch.statements[0].rows or () if batch.statements[0].name == "settle" else ()
    return next((row["id"] for row in rows if row["token"] and not row["expired"]), None)


def _makes_without_key(statement: Statement) -> bool:
    """A store that is told this twice does it twice: keys are there to prevent that."""
    if statement.name != "enqueue_keyed":
        return statement.name.startswith("enqueue")
    return any(row.get("idempotency_key") is None for row in statement.rows or ())


def names(batch: StatementGroup) -> str:
    return "+".join(statement.name for statement in batch.statements)

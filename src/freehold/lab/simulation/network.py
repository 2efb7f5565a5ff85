"""The links between machines and the store, which delay, lose and repeat batches.

    sent -> (delay) -> executed -> (delay) -> result received

A group of statements can fail before its execution, and its sender learns that, or not. It can fail
after its execution, so that only the result is lost. It can be executed twice. Its sender can
give up, and the group is executed much later. A machine that is cut off is refused, or waits
until its timeout; a group that it sent meanwhile may be executed when the link works again.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any

from freehold.clock import VirtualClock
from freehold.errors import OutcomeUnknown, StoreError, StoreUnavailable
from freehold.lab.checker.faults import A_COMMIT
from freehold.lab.simulation.adversarial_claims import CLAIMS, ENQUEUES, AdversarialClaims
from freehold.lab.simulation.flow_locks import TRY_FLOWS, FlowLocks, is_fold
from freehold.lab.simulation.link_noise import NO_NOISE
from freehold.lab.simulation.link_transaction import Executed, LinkTransaction
from freehold.lab.simulation.machine import Machine
from freehold.model.suspension import signal_of
from freehold.store.database import AsyncTransaction, Database
from freehold.store.statements import AsyncSession, Conflict, Rows, Statement, StatementGroup

_MICROS = 1_000_000
#: Statements that can trigger a fault of their machine.
ENDINGS = frozenset({"succeed", "transition", "succeed_in_flow", "transition_in_flow"})
SUCCESSES = frozenset({"succeed", "succeed_in_flow"})
RENEWALS = frozenset({"renew"})
STEPS = frozenset({"put_steps"})
FOLDS = frozenset({TRY_FLOWS})
ADDITIONS = frozenset({"add_members", "add_nodes", "gather"})
TRANSITIONS = frozenset({"transition", "transition_in_flow"})
_BEFORE = (ENDINGS, SUCCESSES, RENEWALS, STEPS, FOLDS, ADDITIONS)
#: A group of statements that its sender gave up is executed about this much later.
LATE_SECONDS = 3.0
#: A share of the late batches waits until their job is claimed again, so that they are executed
#: during the next attempt; another share waits until the lease has just expired, unnoticed.
_UNTIL_RECLAIMED_SHARE = 0.6
_RECLAIM_SECONDS = 8.0
_JUST_AFTER_SECONDS = (0.02, 0.02, 0.3)
_UNTIL_EXPIRED_SHARE = 0.25
_EXPIRED_SECONDS = (1.5, 2.6)
#: The share of batches sent over a broken link that are executed once it works again.
_STUCK_SHARE = 0.3
#: A group of statements sent to a store that was down is executed at most this long after the store
#: is up.
_UP_SECONDS = 0.4
#: An operator without a response repeats these. A first try that is executed after the second would
#: show only that the last write wins.
_NEVER_LATE = frozenset({"pause_queue", "resume_queue"})
#: From the statements of a fold to its commit.
_COMMIT_SECONDS = (0.001, 0.01, 0.2)
#: A connection that receives nothing is given up after this long, as by a TCP timeout.
GIVE_UP_SECONDS = 2.5
#: Notifications are delayed and merged, because waking every worker for every write is slow.
_NOTIFICATION_SECONDS = 0.4


class Network:
    """The store's side, which all links share."""

    def __init__(
        self,
        database: Database,
        clock: VirtualClock,
        seed: str,
        on_executed: Callable[[Machine, StatementGroup, list[Rows]], None],
        on_fault: Callable[[Machine, str, str], None],
    ) -> None:
        self.database = database
        self.clock = clock
        self.noise = NO_NOISE
        self._seed = seed
        self._on_executed = on_executed
        self.claims = AdversarialClaims()
        self.flow_locks = FlowLocks()
        #: Called with the job of an ending that is in flight, to act on it meanwhile.
        self.interrupt: Callable[[int], None] | None = None
        #: By the name of a signal: set when the suspension of a job that waits for it is in flight.
        self.suspensions: dict[str, asyncio.Event] = {}
        #: Called for every fault that happened: machine, kind, statements.
        self.on_fault = on_fault
        #: Until when the store is down, in microseconds of the world's clock; whether connections
        #: hang meanwhile or are refused.
        self.down_until = 0
        self.hangs_while_down = False
        self.up = asyncio.Event()
        self._links: list[Link] = []
        #: Batches that their senders gave up and that will still be executed.
        self.arriving: set[asyncio.Task[None]] = set()

    def executed(self, machine: Machine, group: StatementGroup, results: list[Rows]) -> None:
        self._on_executed(machine, group, results)
        self.claims.observe(group, results)

    def link(self, machine: Machine, *, without_notifications: bool = False) -> Link:
        link = Link(
            self, machine, random.Random(f"{self._seed}/{machine.name}"), without_notifications
        )
        self._links.append(link)
        return link

    # -- the store itself --------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        return self.clock.micros < self.down_until

    def go_down(self, until: int, *, hangs: bool) -> None:
        self.down_until, self.hangs_while_down = until, hangs
        self.up.clear()
        for link in self._links:
            link.notify_listener(None)

    def come_up(self) -> None:
        if not self.down_until:
            return
        self.down_until = 0
        self.up.set()
        for link in self._links:
            link.notify_listener("")


class Link:
    """One machine's database: the real one behind a link that can fail."""

    def __init__(
        self, network: Network, machine: Machine, chance: random.Random, without_notifications: bool
    ) -> None:
        self._network = network
        self._machine = machine
        self._chance = chance
        self._inner = network.database
        self._open: list[LinkTransaction] = []
        self._in_flight: dict[int, StatementGroup] = {}
        self._sent = 0
        #: Notifications never arrive, as behind some connection poolers, so the worker must poll.
        self._without_notifications = without_notifications
        self._has_notification = False
        self._notify: Callable[[str | None], object] | None = None

    def __getattr__(self, name: str) -> Any:
        """Parts that are not simulated: the URL, migrations, blocking sessions."""
        return getattr(self._inner, name)

    # -- batches -----------------------------------------------------------------------------

    def async_session(self) -> AsyncSession:
        return _LinkSession(self, self._inner.async_session())

    async def send(self, group: StatementGroup, session: AsyncSession) -> list[Rows]:
        self._sent += 1
        number = self._sent
        self._in_flight[number] = group
        try:
            fault = self._draw_fault(group)
            await self._fire_trigger(group, *_BEFORE)
            fault = fault or self._interrupt(group)
            await self._before_execution(group, fault)
            if is_fold(group):
                results = await self._fold(group, session)
            else:
                results = await session.execute(group)
        finally:
            self._in_flight.pop(number, None)
        self._network.executed(self._machine, group, results)
        await self._fire_trigger(group, CLAIMS)
        if fault == "duplicated":
            await self._execute_again(group, session)
        await self._after_execution(group, fault)
        return results

    async def _fold(self, group: StatementGroup, session: AsyncSession) -> list[Rows]:
        """Only of flows that no other fold has locked. Commits a little later."""
        locks, now = self._network.flow_locks, self._network.clock.micros
        group = locks.without_locked(group, now)
        results = await session.execute(group)
        if not group.statements[0].rows:
            return results
        seconds = self._chance.choice(_COMMIT_SECONDS)
        locks.lock(group, now + round(seconds * _MICROS))
        await asyncio.sleep(seconds)
        return results

    async def _fire_trigger(self, group: StatementGroup, *statement_sets: frozenset[str]) -> None:
        trigger = self._machine.trigger
        if trigger is None or trigger.statements not in statement_sets:
            return
        if any(statement.name in trigger.statements for statement in group.statements):
            self._machine.trigger = None
            trigger.fire(group, self._network)
            await asyncio.sleep(0)  # a machine that is now dead or frozen stops here

    def _draw_fault(self, group: StatementGroup) -> str:
        noise, draw = self._network.noise, self._chance.random()
        for kind in ("fail_before", "unknown_before", "fail_after", "duplicated", "slow", "late"):
            draw -= getattr(noise, kind)
            if draw < 0:
                if kind in ("duplicated", "unknown_before", "late") and not group.writes:
                    return ""
                if kind == "late" and any(s.name in _NEVER_LATE for s in group.statements):
                    return ""
                if kind == "duplicated" and any(map(_enqueues_without_key, group.statements)):
                    return ""
                self._network.on_fault(self._machine, kind, statement_names(group))
                return kind
        return ""

    def _interrupt(self, group: StatementGroup) -> str:
        interrupt, job_id = self._network.interrupt, _interruptible_job(group)
        suspension = self._network.suspensions.pop(_awaited_signal(group), None)
        if suspension is not None:
            suspension.set()
        elif interrupt is not None and job_id is not None:
            interrupt(job_id)
        else:
            return ""
        self._network.on_fault(self._machine, "slow", statement_names(group))
        return "slow"

    async def _before_execution(self, group: StatementGroup, fault: str) -> None:
        await asyncio.sleep(self._delay(fault))
        await self._refuse_if_cut_off(group, sent=False)
        if fault == "fail_before":
            raise StoreUnavailable("simulated: the connection was refused")
        if fault == "unknown_before":
            raise OutcomeUnknown("simulated: the connection broke; nothing was written")
        if fault == "late":
            self._arrive_later(group, self._chance.uniform(0.2, 1.5) * LATE_SECONDS)
            raise OutcomeUnknown("simulated: no result came in time")

    async def _after_execution(self, group: StatementGroup, fault: str) -> None:
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._delay(""))
        await self._refuse_if_cut_off(group, sent=True)
        if fault == "fail_after":
            raise _connection_error(group)

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
    def is_store_down(self) -> bool:
        return self._network.is_down

    @property
    def _cut_off_until(self) -> int:
        return max(self._machine.cut_off_until, self._network.down_until)

    @property
    def _hangs(self) -> bool:
        if self._network.clock.micros < self._machine.cut_off_until:
            return self._machine.hangs_while_cut_off
        return self._network.hangs_while_down

    async def _refuse_if_cut_off(self, group: StatementGroup, *, sent: bool) -> None:
        if not self._is_cut_off:
            return
        left = (self._cut_off_until - self._network.clock.micros) / _MICROS
        if not sent and group.writes and self._chance.random() < _STUCK_SHARE:
            if self._network.is_down:
                self._arrive_when_up(group)
            else:
                delay = left + self._chance.uniform(0.0, 0.5)
                self._arrive_later(group, delay, min_seconds=left)
            sent = True
        await asyncio.sleep(min(left, GIVE_UP_SECONDS) if self._hangs else 0.02)
        self._network.on_fault(self._machine, "cut_off", statement_names(group))
        if sent:
            raise _connection_error(group)
        raise StoreUnavailable("simulated: the store cannot be reached")

    def _arrive_later(
        self, group: StatementGroup, seconds: float, min_seconds: float = 0.0
    ) -> None:
        """Executes a group that its sender gave up, and drops the result."""
        draw = self._chance.random()
        waits_for_claim = draw < _UNTIL_RECLAIMED_SHARE and not min_seconds
        if waits_for_claim:
            seconds = self._chance.choice(_JUST_AFTER_SECONDS)
        elif draw < _UNTIL_RECLAIMED_SHARE + _UNTIL_EXPIRED_SHARE:
            seconds = max(min_seconds, self._chance.uniform(*_EXPIRED_SECONDS))

        async def until_then() -> None:
            if waits_for_claim:
                await self._network.claims.wait_for(group, _RECLAIM_SECONDS)
            await asyncio.sleep(seconds)

        self._arrive_after(until_then(), group)

    def _arrive_when_up(self, group: StatementGroup) -> None:
        seconds = self._chance.uniform(0.0, _UP_SECONDS)

        async def until_then() -> None:
            await self._network.up.wait()
            await asyncio.sleep(seconds)

        self._arrive_after(until_then(), group)

    def _arrive_after(self, until_then: Coroutine[Any, Any, None], group: StatementGroup) -> None:
        async def arrive() -> None:
            await until_then
            self._network.on_fault(self._machine, "arrived_late", statement_names(group))
            await self._execute_again(group, self._inner.async_session())

        loop, network = asyncio.get_running_loop(), self._network
        outside = contextvars.Context()  # of no machine: the sender may be dead by then
        task = loop.create_task(arrive(), name=statement_names(group), context=outside)
        network.arriving.add(task)
        task.add_done_callback(network.arriving.discard, context=outside)

    async def _execute_again(self, group: StatementGroup, session: AsyncSession) -> None:
        with contextlib.suppress(Conflict, StoreError):
            self._network.executed(self._machine, group, await session.execute(group))

    # -- the machine dies --------------------------------------------------------------------

    async def machine_died(self) -> None:
        """Batches in flight may still be executed; open transactions are rolled back."""
        await self.abort_transactions()
        in_flight, self._in_flight = self._in_flight, {}
        for group in in_flight.values():
            if group.writes and not self._is_cut_off and self._chance.random() < 0.9:
                self._network.on_fault(self._machine, "sent_before_death", statement_names(group))
                self._arrive_later(group, self._chance.uniform(0.3, 1.5) * LATE_SECONDS)

    async def abort_transactions(self) -> None:
        """Rolls back the machine's open transactions, as a server does on an idle timeout."""
        for transaction in tuple(self._open):
            await transaction.abort()

    # -- transactions of handlers ------------------------------------------------------------

    def async_transaction(self) -> AsyncTransaction:
        transaction = LinkTransaction(
            self._inner.async_transaction(), self._closed, self._commit_fails
        )
        self._open.append(transaction)
        return transaction

    def _commit_fails(self) -> bool:
        """Whether the result of a commit is lost; the commit itself has happened."""
        if self._is_cut_off or self._chance.random() < self._network.noise.fail_after:
            self._network.on_fault(self._machine, "fail_after", A_COMMIT)
            return True
        return False

    def _closed(self, transaction: LinkTransaction, executed: Executed) -> None:
        self._open.remove(transaction)
        for group, results in executed:
            self._network.executed(self._machine, group, results)

    # -- notifications -----------------------------------------------------------------------

    async def listen(self, on_notification: Callable[[str | None], None]) -> None:
        """Delivers notifications in the listener's context, delayed and merged."""
        if self._without_notifications:
            await asyncio.Event().wait()
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()

        def deliver(notification: str | None) -> None:
            self._has_notification = False
            if not self._is_cut_off:
                on_notification(notification)

        def schedule(notification: str | None) -> None:
            if not self._has_notification:
                self._has_notification = True
                loop.call_later(_NOTIFICATION_SECONDS, deliver, notification, context=context)

        self._notify = lambda notification: loop.call_soon(
            on_notification, notification, context=context
        )
        await self._inner.listen(schedule)

    def notify_listener(self, notification: str | None) -> None:
        """Notifies that the connection broke (None) or works again (an empty text)."""
        if self._notify is not None:
            self._notify(notification)


class _LinkSession:
    def __init__(self, link: Link, inner: AsyncSession) -> None:
        self._link = link
        self._inner = inner

    async def execute(self, group: StatementGroup) -> list[Rows]:
        return await self._link.send(group, self._inner)


def _connection_error(group: StatementGroup) -> StoreError:
    """The error that the real sessions raise."""
    if group.writes:
        return OutcomeUnknown("simulated: the connection broke during a write")
    return StoreUnavailable("simulated: the connection broke")


def _interruptible_job(group: StatementGroup) -> int | None:
    """The first job that this group ends for its owner, other than by success."""
    rows = group.statements[0].rows or () if group.statements[0].name in TRANSITIONS else ()
    return next((row["id"] for row in rows if row["token"] and not row["expired"]), None)


def _awaited_signal(group: StatementGroup) -> str:
    """The signal that a job waits for which this group suspends."""
    rows = (row for each in group.statements if each.name in TRANSITIONS for row in each.rows or ())
    return next((name for row in rows if (name := signal_of(row["waits_for"] or ""))), "")


def _enqueues_without_key(statement: Statement) -> bool:
    """Repeating such a statement repeats its effect; only idempotency keys prevent that."""
    if statement.name != "enqueue_keyed":
        return statement.name in ENQUEUES
    return any(row.get("idempotency_key") is None for row in statement.rows or ())


def statement_names(group: StatementGroup) -> str:
    return "+".join(statement.name for statement in group.statements)

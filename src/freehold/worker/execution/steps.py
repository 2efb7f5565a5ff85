"""ctx.step: a part of a handler that runs once for its job, and whose value later attempts get.

    first attempt     the function is called, its value is stored under the lease, and returned
    later attempts    all steps are read at the first call of ctx.step; the stored value is returned

A value is returned as it will be read, also when it is new: JSON, decoded to the function's return
type. So an attempt that continues computes with the same values as the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import shlex
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from freehold.errors import BadInput, LeaseLost
from freehold.model import payload
from freehold.model.handler_exceptions import AttemptEnded, HandlerException
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.retry import Retry
from freehold.model.step import Step, StepKind, check_step_name, check_steps_limit
from freehold.model.suspension import sentence, signal, sleep
from freehold.store.types import AwaitedSignal, NewStep
from freehold.value_types import error_text, has_secret, supported_type, typed_decoder
from freehold.worker.event_loop import uninterrupted
from freehold.worker.execution.step_store import StepStore, Wait, lost
from freehold.worker.held_leases import HeldLease, Phase, StopReason

#: Shorter sleeps hold their slot: a suspension and another claim would take about as long.
SHORT_SLEEP_SECONDS = 1.0


class AttemptSteps:
    """The steps of one attempt."""

    def __init__(self, lease: HeldLease, store: StepStore, chance: Callable[[], float]) -> None:
        self._lease = lease
        self._store = store
        self._chance = chance
        #: Steps of earlier attempts; None before they are read.
        self._stored: dict[str, Step] | None = {}
        if lease.attempt.policy_json is not None and lease.attempt.policy.has_steps:
            self._stored = None
        self._read_at = 0.0
        self._last_number = 0
        #: A plain function can run steps in several threads.
        self._numbering = threading.Lock()
        self._reading, self._reading_blocking = asyncio.Lock(), threading.Lock()
        #: Names of steps that have begun in this attempt.
        self._names: set[str] = set()
        self._running: set[str] = set()

    # -- ctx.step ----------------------------------------------------------------------------

    def run(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        retry: Retry | None,
    ) -> Any:
        """A coroutine on the worker's event loop, the value itself in a thread."""
        if not callable(function):
            raise BadInput(f"ctx.step({name!r}, {function!r}): give a function and its arguments")
        if retry is not None and not isinstance(retry, Retry):
            raise BadInput(f"retry={retry!r}: give a Retry, as in Retry(max_attempts=3)")
        call = functools.partial(function, *args, **kwargs)
        value_type = ValueType.of(function, args)
        if is_on(self._store.loop):
            return self._run_awaited(name, call, value_type, retry)
        return self._run_blocking(name, call, value_type, retry)

    async def _run_awaited(
        self, name: str, call: Callable[[], Any], value_type: ValueType, retry: Retry | None
    ) -> Any:
        self.begin(name)
        with self.ending(name):
            found = (await self.stored()).get(name)
            if found is not None:
                return self._value_of(found, value_type)
            value = await self._call_awaited(call, retry)
            step, decoded = self._new(name, value, value_type)
            with self.interruptible():
                await uninterrupted(self._store.write(self._lease, step))
            return decoded

    def _run_blocking(
        self, name: str, call: Callable[[], Any], value_type: ValueType, retry: Retry | None
    ) -> Any:
        self.begin(name)
        with self.ending(name):
            found = self.stored_blocking().get(name)
            if found is not None:
                return self._value_of(found, value_type)
            value = self._call_blocking(call, retry)
            step, decoded = self._new(name, value, value_type)
            self._store.write_blocking(self._lease, step)
            return decoded

    async def _call_awaited(self, call: Callable[[], Any], retry: Retry | None) -> Any:
        tries = 0
        while True:
            try:
                value = call()
                return await value if inspect.isawaitable(value) else value
            except Exception as error:
                tries += 1
                await asyncio.sleep(self._wait_seconds(error, tries, retry))

    def _call_blocking(self, call: Callable[[], Any], retry: Retry | None) -> Any:
        tries, pause = 0, threading.Event()
        while True:
            try:
                value = call()
            except Exception as error:
                tries += 1
                pause.wait(self._wait_seconds(error, tries, retry))
                continue
            if inspect.iscoroutine(value):
                value.close()
                raise BadInput("a step of a plain function cannot await: give a plain function")
            return value

    def _wait_seconds(self, error: Exception, tries: int, retry: Retry | None) -> float:
        """Until the next try; raises the error if there is none."""
        if retry is None or tries >= retry.max_attempts or not retry.is_retryable(error):
            raise error
        if isinstance(error, HandlerException | LeaseLost) or self._lease.stop_reason is not None:
            raise error
        return retry.delay_seconds(tries, self._chance())

    # -- ctx.sleep ---------------------------------------------------------------------------

    def sleep(self, name: str, seconds: float) -> Any:
        """A coroutine on the worker's event loop; None in a thread."""
        if is_on(self._store.loop):
            return self._sleep_awaited(name, seconds)
        return self._sleep_blocking(name, seconds)

    async def _sleep_awaited(self, name: str, seconds: float) -> None:
        self.begin_wait(name)
        with self.ending(name):
            found = (await self.stored()).get(name)
            if found is None:
                step = self.new_step(name, kind=StepKind.SLEEP, seconds=seconds)
                await self._store.write(self._lease, step)
            left = self._left(found, seconds)
            if left > SHORT_SLEEP_SECONDS:
                self.suspend(sleep(name), left)
            await asyncio.sleep(left)

    def _sleep_blocking(self, name: str, seconds: float) -> None:
        self.begin_wait(name)
        with self.ending(name):
            found = self.stored_blocking().get(name)
            if found is None:
                step = self.new_step(name, kind=StepKind.SLEEP, seconds=seconds)
                self._store.write_blocking(self._lease, step)
            left = self._left(found, seconds)
            if left > SHORT_SLEEP_SECONDS:
                self.suspend(sleep(name), left)
            threading.Event().wait(left)

    def begin_wait(self, name: str) -> None:
        if self._running:
            others = ", ".join(map(repr, sorted(self._running)))
            raise BadInput(
                f"job {self._lease.attempt.job_id} cannot be suspended by {name!r} while step "
                f"{others} runs, which would be cut off: await it first"
            )
        self.begin(name)

    def _left(self, found: Step | None, seconds: float) -> float:
        """Seconds until the end of a wait that an earlier attempt may have begun."""
        if found is None:
            return seconds
        self.check_kind(found, StepKind.SLEEP)
        passed = self._store.loop.time() - self._read_at
        return max(0.0, (found.left_seconds or 0.0) - passed)

    def check_kind(self, found: Step, *kinds: StepKind) -> None:
        if found.kind not in kinds:
            raise BadInput(
                f"step {found.name!r} of job {self._lease.attempt.job_id} is stored as a "
                f"{found.kind}, and is now a {kinds[0]}: give it another name"
            )

    def suspend(self, waits_for: str, seconds: float) -> NoReturn:
        """The attempt ends here; the job runs again after so many seconds."""
        reason = sentence(waits_for)
        self.end_attempt(
            Outcome(
                kind=OutcomeKind.SUSPEND, reason=reason, delay_seconds=seconds, waits_for=waits_for
            )
        )

    # -- ctx.wait_for_signal -----------------------------------------------------------------

    def wait_for_signal(self, name: str, hint: Any, seconds: float) -> Any:
        """A coroutine on the worker's event loop, the value itself in a thread."""
        value_type = ValueType(hint)
        if is_on(self._store.loop):
            return self._wait_awaited(name, value_type, seconds)
        return self._wait_blocking(name, value_type, seconds)

    async def _wait_awaited(self, name: str, value_type: ValueType, seconds: float) -> Any:
        self.begin_wait(name)
        with self.ending(name):
            found = (await self.stored()).get(name)
            if found is None or found.kind is StepKind.WAIT:
                wait = self._wait_of(name, found, seconds, value_type)
                signaled = await self._store.await_signal(self._lease, wait)
                return self._signaled(name, signaled.kind, signaled, value_type)
            return self._signaled(name, found.kind, found, value_type)

    def _wait_blocking(self, name: str, value_type: ValueType, seconds: float) -> Any:
        self.begin_wait(name)
        with self.ending(name):
            found = self.stored_blocking().get(name)
            if found is None or found.kind is StepKind.WAIT:
                wait = self._wait_of(name, found, seconds, value_type)
                signaled = self._store.await_signal_blocking(self._lease, wait)
                return self._signaled(name, signaled.kind, signaled, value_type)
            return self._signaled(name, found.kind, found, value_type)

    def _wait_of(
        self, name: str, found: Step | None, seconds: float, value_type: ValueType
    ) -> Wait:
        number = self.new_step(name).number if found is None else found.number
        return Wait(name, number, seconds, self._is_hidden(value_type))

    def _signaled(
        self, name: str, kind: StepKind, found: Step | AwaitedSignal, value_type: ValueType
    ) -> Any:
        if kind is StepKind.WAIT:
            self.suspend(signal(name), max(0.001, found.left_seconds or 0.0))
        if kind is StepKind.TIMEOUT:
            raise TimeoutError(f"the signal {name!r} was not sent in time")
        if isinstance(found, Step):
            self.check_kind(found, StepKind.SIGNAL)
        return self._decoded(f"signal {name!r}", found.value, value_type)

    # -- stored steps ------------------------------------------------------------------------

    async def stored(self) -> dict[str, Step]:
        """Read once, also if several steps begin at the same time."""
        async with self._reading:
            if self._stored is None:
                return self._remember(await self._store.read(self._lease))
            return self._stored

    def stored_blocking(self) -> dict[str, Step]:
        with self._reading_blocking:
            if self._stored is None:
                return self._remember(self._store.read_blocking(self._lease))
            return self._stored

    def _remember(self, steps: list[Step]) -> dict[str, Step]:
        self._stored = stored = {step.name: step for step in steps}
        self._read_at = self._store.loop.time()
        with self._numbering:
            self._last_number = max(self._last_number, *(step.number for step in steps), 0)
        return stored

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around an uninterrupted write. A handler whose own timeout expired meanwhile does not
        get the value; if it repeats the step, the stored one is read."""
        try:
            yield
        except asyncio.CancelledError:
            self._stored = None
            raise

    def _new(self, name: str, value: Any, value_type: ValueType) -> tuple[NewStep, Any]:
        """The step to be written, and its value as it will be read."""
        data = payload.encode(f"the value of step {name!r}", value)
        try:
            decoded = value_type.decode(data)
        except msgspec.MsgspecError as error:
            raise BadInput(
                f"step {name!r} returned a value that does not fit its return type "
                f"`{value_type.shown}`: {value_type.error(error)}; nothing was stored"
            ) from None
        return self.new_step(name, value=data, hidden=self._is_hidden(value_type)), decoded

    def _is_hidden(self, value_type: ValueType) -> bool:
        return value_type.is_secret or bool(self._lease.attempt.policy.secret_args)

    def new_step(self, name: str, **fields: Any) -> NewStep:
        with self._numbering:
            self._last_number = number = self._last_number + 1
        return NewStep(self._lease.key, name, number, **fields)

    def _value_of(self, step: Step, value_type: ValueType) -> Any:
        self.check_kind(step, StepKind.RESULT)
        again = f"freehold job retry {self._lease.attempt.job_id} --from {shlex.quote(step.name)}"
        hint = f", or run the step and the later ones again: {again}"
        return self._decoded(f"step {step.name!r}", step.value, value_type, hint)

    def _decoded(self, what: str, value: str | None, value_type: ValueType, hint: str = "") -> Any:
        try:
            return value_type.decode("null" if value is None else value)
        except msgspec.MsgspecError as error:
            self.end_attempt(
                Outcome(
                    kind=OutcomeKind.PAUSE,
                    reason=f"the stored value of {what} does not fit its type "
                    f"`{value_type.shown}` any more: {value_type.error(error)}. Resume the job "
                    f"with code that fits{hint}",
                )
            )

    # -- rules -------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """Refuses what is no new step of this attempt."""
        lease, job_id = self._lease, self._lease.attempt.job_id
        check_step_name(name)
        if lease.ended_by_context is not None:
            raise AttemptEnded
        if lease.stop_reason in (StopReason.LEASE_LOST, StopReason.TIMEOUT):
            raise lost(lease)
        if lease.phase in (Phase.IN_TRANSACTION, Phase.COMMITTING):
            raise BadInput(
                f"job {job_id} has a transaction open: a step inside of it would wait for it; use "
                f"ctx.transaction(step={name!r}) for a step that commits with your own writes"
            )
        if lease.phase is Phase.FINISHED:
            raise BadInput(f"job {job_id} is finished by its transaction: no step can follow")
        if name in self._names:
            raise BadInput(
                f"job {job_id} has two steps {name!r} in one attempt, and a step is known by its "
                'name: give each its own, in a loop for example f"charge:{item}"'
            )
        if self._stored is not None and name not in self._stored:
            check_steps_limit(job_id, self._last_number + len(self._running))
        self._names.add(name)
        self._running.add(name)

    @contextlib.contextmanager
    def ending(self, name: str, error: BaseException | None = None) -> Iterator[None]:
        """Around the work of a step. One that failed may be tried again in the same attempt."""
        try:
            yield
        except BaseException:
            self.fail(name)
            raise
        self._running.discard(name)
        if error is not None:
            self._names.discard(name)

    def fail(self, name: str) -> None:
        self._running.discard(name)
        self._names.discard(name)

    def check_written(self, is_held: bool) -> None:
        """Raises LeaseLost."""
        self._store.check_written(self._lease, is_held)

    def end_attempt(self, outcome: Outcome) -> NoReturn:
        lease, now = self._lease, self._store.loop.time()
        ran = None if lease.started_at is None else now - lease.started_at
        lease.ended_by_context = msgspec.structs.replace(outcome, ran_seconds=ran)
        raise AttemptEnded


class ValueType:
    """How the value of a step is decoded."""

    def __init__(self, hint: Any) -> None:
        self.shown = inspect.formatannotation(hint)
        self.is_secret = has_secret(hint)
        try:
            self.decode = typed_decoder(supported_type(hint)).decode
        except (TypeError, ValueError) as error:
            raise BadInput(
                f"the function of a step returns `{self.shown}`, which JSON cannot represent: "
                f"{error}"
            ) from None

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[Any, ...]) -> ValueType:
        """The return type of a function; Any where it has none."""
        if function is asyncio.to_thread and args:
            function = args[0]
        while isinstance(function, functools.partial):
            function = function.func
        if not inspect.isroutine(function):
            function = getattr(function, "__call__", function)  # noqa: B004 - the method itself
        try:
            hint = get_type_hints(function, include_extras=True).get("return", Any)
        except (NameError, TypeError):
            hint = Any
        if get_origin(hint) in (Awaitable, Coroutine):
            hint = get_args(hint)[-1]
        return cls(Any if isinstance(hint, TypeVar) else hint)

    def error(self, error: BaseException) -> str:
        if self.is_secret:
            return "the secret value does not fit"
        text, path = error_text(error)
        return f"{text} - at `{path}`" if path else text


def is_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the caller runs on this event loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False

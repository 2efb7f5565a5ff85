"""Extensions: code of the app around every enqueue, attempt, end of an attempt, and worker.

Methods that an extension does not override cost nothing: `Extensions` keeps a list for each hook,
and the parts of the program look at whether their list is empty.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from freehold.errors import BadInput, BadSettings
from freehold.model.job import Attempt, NewJob
from freehold.model.meta import MetaValue, decode_meta, encode_meta
from freehold.model.names import check_key
from freehold.model.outcome import Outcome
from freehold.model.state import State
from freehold.telemetry import carried_fields, log

if TYPE_CHECKING:
    from freehold.client import JobHandle
    from freehold.worker.config import WorkerSettings
    from freehold.worker.execution.context import Context

T = TypeVar("T")
#: Extensions of every app that is made from now on, for tools that know no app.
default_extensions: list[Extension] = []
#: Called in a child process before it imports the app.
child_preparations: list[Callable[[], None]] = []
AnyContext: TypeAlias = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]


class EndedAttempt(msgspec.Struct, frozen=True):
    """How an attempt ended, and what became of its job."""

    job: Attempt
    outcome: Outcome
    #: Of the job now: queued if it is tried again.
    state: State
    #: The wait until the next attempt; None if there is none.
    retry_seconds: float | None
    reason: str | None


class Extension:
    """Override what is needed, as a plain function or as a coroutine function."""

    def enqueueing(self, jobs: list[NewJob]) -> Any:
        """Before jobs are stored. Returns them, or changed copies in the same order. An exception
        refuses the call, and nothing is written."""
        return jobs

    def enqueued(self, jobs: list[NewJob], handles: Sequence[JobHandle]) -> Any:
        """After jobs are stored; in the caller's transaction, before its commit."""

    def enqueue_failed(self, jobs: list[NewJob], error: BaseException) -> Any:
        """After an exception of the store or of an extension, for jobs that passed `enqueueing`.
        After OutcomeUnknown they may be stored."""

    def attempt(self, ctx: Context) -> AnyContext:
        """A context manager around the handler, in its own task, thread or child process. An
        exception in it is the attempt's error."""
        return nullcontext()

    def ended(self, attempt: EndedAttempt) -> Any:
        """After the end of an attempt is stored, also of an attempt whose worker was lost."""

    def worker(self, settings: WorkerSettings) -> AnyContext:
        """A context manager around the life of a worker process."""
        return nullcontext()


class _Waits(BaseException):
    """Raised in a plain hook that returned something to wait for. The hook's own code does not
    catch it as an Exception, and try again for ever."""

    def __str__(self) -> str:
        return "waits, and is not a coroutine function: define it with `async def`"


class Extensions:
    """The extensions of an app, in the order of their registration: the first is outermost."""

    def __init__(self) -> None:
        self._enqueueing: list[Extension] = []
        self._enqueued: list[Extension] = []
        self._enqueue_failed: list[Extension] = []
        self._workers: list[Extension] = []
        self.attempts: list[Extension] = []
        self.endings: list[Extension] = []
        #: Whether any of them sees enqueued jobs.
        self.see_enqueues = False
        self._wait_in_enqueues = False

    def add(self, extension: Extension) -> None:
        if not isinstance(extension, Extension):
            raise BadSettings(
                f"{extension!r} is not an extension: give an instance of a class that inherits "
                "freehold.Extension"
            )
        lists = {
            "enqueueing": self._enqueueing,
            "enqueued": self._enqueued,
            "enqueue_failed": self._enqueue_failed,
            "attempt": self.attempts,
            "ended": self.endings,
            "worker": self._workers,
        }
        for name, registered in lists.items():
            if getattr(type(extension), name) is not getattr(Extension, name):
                registered.append(extension)
        self.see_enqueues = bool(self._enqueueing or self._enqueued or self._enqueue_failed)
        hooks = (extension.enqueueing, extension.enqueued, extension.enqueue_failed)
        self._wait_in_enqueues |= any(map(inspect.iscoroutinefunction, hooks))

    def replace(self, extension: Extension) -> None:
        """Add it in place of all others of its class."""
        lists = (self._enqueueing, self._enqueued, self._enqueue_failed, self._workers)
        for registered in (*lists, self.attempts, self.endings):
            registered[:] = [each for each in registered if type(each) is not type(extension)]
        self.add(extension)

    # -- enqueues ----------------------------------------------------------------------------

    async def before_enqueue(self, jobs: Sequence[NewJob]) -> list[NewJob]:
        passed = list(jobs)
        try:
            for each in self._enqueueing:
                passed = await _changed_by(each, passed)
        except BaseException as error:
            await self.after_failure(passed, error)
            raise
        return passed

    async def after_enqueue(self, jobs: list[NewJob], handles: Sequence[JobHandle]) -> None:
        for each in self._enqueued:
            try:
                await _awaited(each.enqueued(jobs, handles))
            except (Exception, _Waits):
                log.exception("%s.enqueued failed; the jobs are stored", _name(each))

    async def after_failure(self, jobs: list[NewJob], error: BaseException) -> None:
        for each in self._enqueue_failed:
            try:
                await _awaited(each.enqueue_failed(jobs, error))
            except (Exception, _Waits):
                log.exception("%s.enqueue_failed failed", _name(each))

    def run_blocking(self, work: Coroutine[Any, Any, T]) -> T:
        """One of the two above, for a blocking caller, which may be inside of an event loop."""
        if self._wait_in_enqueues:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(contextvars.copy_context().run, asyncio.run, work).result()
        try:
            work.send(None)
            while True:  # once for each hook that waits
                work.throw(_Waits())
        except StopIteration as end:
            value: T = end.value
            return value

    # -- attempts ----------------------------------------------------------------------------

    def around(
        self, call: Callable[[], Any], ctx: Context, *, is_coroutine: bool
    ) -> Callable[[], Any]:
        """The call of a handler inside of all context managers."""

        async def awaited() -> Any:
            async with AsyncExitStack() as stack:
                for each in self.attempts:
                    await _enter(stack, each.attempt(ctx))
                return await call()

        def called() -> Any:
            with ExitStack() as stack:
                for each in self.attempts:
                    stack.enter_context(_plain(each.attempt(ctx)))
                return call()

        return awaited if is_coroutine else called

    # -- workers -----------------------------------------------------------------------------

    @asynccontextmanager
    async def around_worker(self, settings: WorkerSettings) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in self._workers:
                await _enter(stack, each.worker(settings))
            yield


async def _changed_by(extension: Extension, jobs: list[NewJob]) -> list[NewJob]:
    try:
        changed = await _awaited(extension.enqueueing(jobs))
    except _Waits as error:
        raise BadInput(f"{_name(extension)}.enqueueing {error}") from None
    if not isinstance(changed, list) or len(changed) != len(jobs):
        raise BadInput(f"{_name(extension)}.enqueueing must return a list of {len(jobs)} jobs")
    return changed


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _enter(stack: AsyncExitStack, context: AnyContext) -> None:
    if isinstance(context, AbstractAsyncContextManager):
        await stack.enter_async_context(context)
    else:
        stack.enter_context(context)


@contextmanager
def _of_async(context: AbstractAsyncContextManager[Any]) -> Iterator[None]:
    """For a handler in a thread, which sees no running event loop."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        runner.run(stack.enter_async_context(context))
        try:
            yield
        except BaseException as error:
            if not runner.run(stack.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            runner.run(stack.__aexit__(None, None, None))


def _plain(context: AnyContext) -> AbstractContextManager[Any]:
    return _of_async(context) if isinstance(context, AbstractAsyncContextManager) else context


def _name(extension: Extension) -> str:
    return type(extension).__name__


class CarriedVariable(Extension):
    """A context variable whose value goes with a job, in its metadata."""

    def __init__(self, variable: contextvars.ContextVar[Any], name: str | None) -> None:
        self._variable = variable
        self._name = check_key("the name of a carried variable", name or variable.name)

    def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
        value: MetaValue = self._variable.get(None)
        return jobs if value is None else [self._with(job, value) for job in jobs]

    def _with(self, job: NewJob, value: MetaValue) -> NewJob:
        """Metadata of the same name that the call has given is kept."""
        meta = {self._name: value, **decode_meta(job.meta_json)}
        return msgspec.structs.replace(job, meta_json=encode_meta(meta))

    @contextmanager
    def attempt(self, ctx: Context) -> Iterator[None]:
        meta = ctx.meta
        if self._name not in meta:
            yield
            return
        token = self._variable.set(meta[self._name])
        in_logs = carried_fields.set({**carried_fields.get(), self._name: meta[self._name]})
        try:
            yield
        finally:
            carried_fields.reset(in_logs)
            self._variable.reset(token)

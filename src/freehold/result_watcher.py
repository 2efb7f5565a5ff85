"""One watcher for all callers of this process that wait for jobs of one database.

A caller has a future and reads nothing itself. The watcher, a thread with an event loop, reads all
jobs that are waited for in one statement, and sets the futures of those that have ended:

    a job begins to be waited for     read after 20 ms, then after twice the time, up to 1 s
    a notification names the job      read at once; only `call` and `acall` ask for these
    something changed (SQLite)        read again, 20 ms after the last read at the earliest

The more jobs are waited for, the longer the gap between two reads: one read then delivers more
results. The thread starts with the first caller and ends some seconds after the last. An outage of
the store ends no wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError

from freehold.clock import monotonic
from freehold.errors import StoreUnavailable
from freehold.fork_safety import ForkAware, lock_of, notice_forks
from freehold.model.job import JobEnd
from freehold.rare_warning import RareWarning
from freehold.store import notifications
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.store_health import PASSING

_FIRST_SECONDS = 0.02
_LONGEST_SECONDS = 1.0
#: The gap between two reads, for each job that is waited for and at most: 17 reads a second.
_GAP_SECONDS_PER_JOB = 0.001
_LONGEST_GAP_SECONDS = 0.06
#: For how long an unused thread stays: a caller that waits again soon needs no new connection.
_UNUSED_SECONDS = 5.0
_STOP_SECONDS = 5.0
_outage = RareWarning("results cannot be read at present, callers keep waiting: %s")
#: Threads of a parent process. Freeing their event loops here would change the parent's.
_of_parent: list[_WatcherThread] = []


class ReadPace:
    """When the next read is due."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._interval = _FIRST_SECONDS
        self._read_at = float("-inf")
        self._due_at = float("inf")

    def job_added(self) -> None:
        self._interval = _FIRST_SECONDS
        self._due_at = min(self._due_at, self._now() + self._interval)

    def job_ended(self) -> None:
        self._due_at = self._now()

    def store_changed(self) -> None:
        """Something, of any job."""
        self._due_at = min(self._due_at, max(self._now(), self._read_at + _FIRST_SECONDS))

    def was_read(self) -> None:
        self._read_at = self._now()
        self._due_at = self._read_at + self._interval
        self._interval = min(2 * self._interval, _LONGEST_SECONDS)

    def seconds_left(self, jobs: int) -> float:
        """Until the next read. ``jobs``: how many are waited for."""
        gap = min(jobs * _GAP_SECONDS_PER_JOB, _LONGEST_GAP_SECONDS)
        return max(self._due_at, self._read_at + gap) - self._now()


class ResultWatcher(ForkAware):
    """Waits for the ends of jobs, for threads and for coroutines of any event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[int, list[Future[JobEnd | None]]] = {}
        self._thread: _WatcherThread | None = None
        self._is_closed = False
        self._lock = lock_of(self)
        notice_forks(self)

    def wait(self, job_id: int, seconds: float | None) -> JobEnd | None:
        """How the job has ended; None: there is no such job. Raises TimeoutError."""
        future = self._add(job_id)
        try:
            return future.result(seconds)
        finally:
            self._remove(job_id, future)

    async def wait_async(self, job_id: int, seconds: float | None) -> JobEnd | None:
        """The same for asyncio."""
        future = self._add(job_id)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        finally:
            self._remove(job_id, future)

    def close(self) -> None:
        """Ends all waits and the thread."""
        with self._lock:
            self._is_closed, thread = True, self._thread
        self.fail(StoreUnavailable("the app was closed while a caller waited; the job goes on"))
        if thread is not None:
            thread.stop()

    def after_fork_in_child(self) -> None:
        """The thread and the callers are the parent's."""
        if self._thread is not None:
            _of_parent.append(self._thread)
        self._thread, self._waiting = None, {}

    def _add(self, job_id: int) -> Future[JobEnd | None]:
        future: Future[JobEnd | None] = Future()
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("the app is closed: take the handle from app.job(id) again")
            if self._thread is None:  # kept once it runs: the system may refuse another thread
                thread = _WatcherThread(self, self._database)
                thread.start()
                self._thread = thread
            self._waiting.setdefault(job_id, []).append(future)
            self._thread.job_added()
        return future

    def _remove(self, job_id: int, future: Future[JobEnd | None]) -> None:
        with self._lock:
            futures = self._waiting.get(job_id, [])
            if future in futures:
                futures.remove(future)
            if not futures:
                self._waiting.pop(job_id, None)

    # -- for the thread ----------------------------------------------------------------------

    def waited_for(self) -> list[int]:
        with self._lock:
            return list(self._waiting)

    def is_waited_for(self, job_id: int) -> bool:
        return job_id in self._waiting

    def deliver(self, ends: Mapping[int, JobEnd | None]) -> None:
        with self._lock:
            ended = [(end, self._waiting.pop(job_id, [])) for job_id, end in ends.items()]
        for end, futures in ended:
            for future in futures:
                with contextlib.suppress(InvalidStateError):  # its caller has given up
                    future.set_result(end)

    def fail(self, error: BaseException) -> None:
        """Ends all waits. The next caller starts another thread."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._thread = None
        for futures in waiting.values():
            for future in futures:
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(error)

    def leave(self) -> bool:
        """Whether the thread may end: there are no callers. The next one starts another."""
        with self._lock:
            if self._waiting:
                return False
            self._thread = None
            return True


class _WatcherThread:
    """Reads until no caller is left, or until it is stopped."""

    def __init__(self, watcher: ResultWatcher, database: Database) -> None:
        self._watcher = watcher
        self._database = database
        self._store = AsyncStore(database.async_session())
        self._loop = asyncio.new_event_loop()
        self._pace = ReadPace(monotonic)
        self._changed = asyncio.Event()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="freehold-results", daemon=True)

    def start(self) -> None:
        try:
            self._thread.start()
        except BaseException:
            self._loop.close()
            raise

    def stop(self) -> None:
        self._call_soon(self._stop)
        self._thread.join(_STOP_SECONDS)

    def job_added(self) -> None:
        self._call_soon(self._pace.job_added)

    def _call_soon(self, call: Callable[[], None]) -> None:
        """From any thread; the loop may be closed already."""

        def change() -> None:
            call()
            self._changed.set()

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(change)

    def _stop(self) -> None:
        self._is_stopped = True

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._watch())

    async def _watch(self) -> None:
        listening = asyncio.create_task(self._database.listen(self._on_notification))
        try:
            while ids := await self._next_ids():
                await self._read(ids)
        except BaseException as error:  # no caller may wait for a thread that has ended
            self._watcher.fail(error)
        finally:
            listening.cancel()
            await asyncio.wait((listening,))
            await self._database.aclose()

    async def _next_ids(self) -> list[int]:
        """The jobs to read, once the next read is due; none: the thread ends."""
        while not self._is_stopped:
            self._changed.clear()
            ids = self._watcher.waited_for()
            seconds = self._pace.seconds_left(len(ids)) if ids else _UNUSED_SECONDS
            if seconds <= 0:
                return ids
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                if not ids and self._watcher.leave():
                    break
        return []

    async def _read(self, ids: list[int]) -> None:
        try:
            self._watcher.deliver(await self._store.read_ends(ids))
        except PASSING as error:
            _outage.log(error)
        self._pace.was_read()

    def _on_notification(self, topic: str | None) -> None:
        """In memory the writer's thread calls it."""
        if topic == "":
            self._call_soon(self._pace.store_changed)
        elif topic and any(map(self._watcher.is_waited_for, notifications.ended_jobs(topic))):
            self._call_soon(self._pace.job_ended)

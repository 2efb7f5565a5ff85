"""Sessions on the file: many callers share one transaction, and so one fsync.

A thread of its own writes. It takes all statement groups that arrived while it was writing the last
ones, and commits them together: a single job is written at once, a thousand in a few transactions.
In memory there is no fsync to share, and everything happens in the caller.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future

from freehold.fork_safety import ForkAware, notice_forks
from freehold.store.sqlite.engine import Engine
from freehold.store.sqlite.handler_transaction import refuse_inside
from freehold.store.statements import Rows, StatementGroup

_GROUPS_PER_TRANSACTION = 64
_JOIN_TIMEOUT_SECONDS = 5.0


class GroupWriter(ForkAware):
    """Writes statement groups in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.SimpleQueue[tuple[StatementGroup, Future[list[Rows]]] | None]
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        notice_forks(self)

    def before_fork(self) -> bool:
        return False

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._thread = None

    def submit(self, group: StatementGroup) -> Future[list[Rows]]:
        result: Future[list[Rows]] = Future()
        with self._lock:
            if self._thread is None:
                self._start()
            self._waiting.put((group, result))
        return result

    def _start(self) -> None:
        self._waiting = queue.SimpleQueue()
        thread = threading.Thread(target=self._run, name="freehold-sqlite", daemon=True)
        thread.start()  # if this raises, there is no thread
        self._thread = thread

    def _run(self) -> None:
        waiting = self._waiting
        while (first := waiting.get()) is not None:
            groups = [first]
            while len(groups) < _GROUPS_PER_TRANSACTION:
                try:
                    more = waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    waiting.put(None)
                    break
                groups.append(more)
            self._write(groups)

    def _write(self, groups: list[tuple[StatementGroup, Future[list[Rows]]]]) -> None:
        groups = [each for each in groups if each[1].set_running_or_notify_cancel()]
        try:
            results = self._engine.write([group for group, _ in groups])
        except Exception as error:  # the commit itself failed: nothing was written
            for _, future in groups:
                future.set_exception(error)
            return
        for (_, future), result in zip(groups, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def close(self) -> None:
        with self._lock:
            if self._thread is not None:
                self._waiting.put(None)
                # The thread may wait for a handler's transaction that never ends.
                self._thread.join(_JOIN_TIMEOUT_SECONDS)
            self._thread = None


class SqliteSession:
    """Blocking: each group is durable when execute returns."""

    def __init__(self, engine: Engine, writer: GroupWriter | None) -> None:
        self._engine = engine
        self._writer = writer

    def execute(self, group: StatementGroup) -> list[Rows]:
        if not group.writes:
            return self._engine.read(group)
        refuse_inside(self._engine)
        if self._writer is not None:
            return self._writer.submit(group).result()
        return _only(self._engine.write([group]))


class AsyncSqliteSession:
    """The same for asyncio; the event loop never waits for the disk."""

    def __init__(self, engine: Engine, writer: GroupWriter | None) -> None:
        self._engine = engine
        self._writer = writer

    async def execute(self, group: StatementGroup) -> list[Rows]:
        if group.writes or self._writer is None:
            refuse_inside(self._engine)
        if self._writer is None:
            await self._engine.loop_lock.wait()
            return _only(self._engine.write([group])) if group.writes else self._engine.read(group)
        if group.writes:
            return await asyncio.wrap_future(self._writer.submit(group))
        return await asyncio.to_thread(self._engine.read, group)


def _only(results: list[list[Rows] | Exception]) -> list[Rows]:
    result = results[0]
    if isinstance(result, Exception):
        raise result
    return result

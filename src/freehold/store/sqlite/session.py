"""Sessions on the file: writes are grouped, so that many callers share one fsync.

A thread of its own writes. It takes all batches that came while it was writing the last
ones, and commits them together: one job alone is written at once, a thousand in a few
transactions. In memory there is nothing to share, and everything happens in the caller.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future

from freehold.store.sqlite.engine import Engine
from freehold.store.sqlite.fork_hooks import survives_forks
from freehold.store.sqlite.handler_transaction import refuse_inside
from freehold.store.statements import Rows, StatementGroup

_GROUP_LIMIT = 64
_PATIENCE_SECONDS = 5.0


class GroupWriter:
    """The thread that writes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.SimpleQueue[tuple[StatementGroup, Future[list[Rows]]] | None]
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        survives_forks(self)

    def rest(self) -> bool:
        return False

    def wake(self) -> None:
        pass

    def begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._thread = None

    def submit(self, batch: StatementGroup) -> Future[list[Rows]]:
        answer: Future[list[Rows]] = Future()
        with self._lock:
            if self._thread is None:
                self._start()
            self._waiting.put((batch, answer))
        return answer

    def _start(self) -> None:
        self._waiting = queue.SimpleQueue()
        thread = threading.Thread(target=self._run, name="freehold-sqlite", daemon=True)
        thread.start()  # which can fail, and then there is none
        self._thread = thread

    def _run(self) -> None:
        waiting = self._waiting
        while (first := waiting.get()) is not None:
            group = [first]
            while len(group) < _GROUP_LIMIT:
                try:
                    more = waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    waiting.put(None)
                    break
                group.append(more)
            self._write(group)

    def _write(self, group: list[tuple[StatementGroup, Future[list[Rows]]]]) -> None:
        group = [each for each in group if each[1].set_running_or_notify_cancel()]
        try:
            answers = self._engine.write([batch for batch, _ in group])
        except Exception as error:  # the commit itself failed: nobody's write happened
            for _, future in group:
                future.set_exception(error)
            return
        for (_, future), answer in zip(group, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def close(self) -> None:
        with self._lock:
            if self._thread is not None:
                self._waiting.put(None)
                self._thread.join(_PATIENCE_SECONDS)  # it may wait for one who never ends
            self._thread = None


class SqliteSession:
    """Blocking: each batch is durable when execute returns."""

    def __init__(self, engine: Engine, writer: GroupWriter | None) -> None:
        self._engine = engine
        self._writer = writer

    def execute(self, batch: StatementGroup) -> list[Rows]:
        if not batch.writes:
            return self._engine.read(batch)
        refuse_inside(self._engine)
        if self._writer is not None:
            return self._writer.submit(batch).result()
        return _only(self._engine.write([batch]))


class AsyncSqliteSession:
    """The same for asyncio; the event loop never waits for the disk."""

    def __init__(self, engine: Engine, writer: GroupWriter | None) -> None:
        self._engine = engine
        self._writer = writer

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        if batch.writes or self._writer is None:
            refuse_inside(self._engine)
        if self._writer is None:
            await self._engine.loop_turn.wait()
            return _only(self._engine.write([batch])) if batch.writes else self._engine.read(batch)
        if batch.writes:
            return await asyncio.wrap_future(self._writer.submit(batch))
        return await asyncio.to_thread(self._engine.read, batch)


def _only(answers: list[list[Rows] | Exception]) -> list[Rows]:
    answer = answers[0]
    if isinstance(answer, Exception):
        raise answer
    return answer

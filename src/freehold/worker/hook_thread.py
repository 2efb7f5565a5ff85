"""The thread in which a worker calls plain functions of extensions.

asyncio's own threads are waited for when their event loop ends, and again when the process ends: a
function that never returns would keep a web server alive that runs a worker.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeAlias

_Call: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class HookThread(Executor):
    """One call after another. Its thread starts with the first one, and ends with `shutdown`, or
    with the process."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_started = False

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._calls.put((future, lambda: function(*args, **named)))
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._work, name="freehold-hooks", daemon=True).start()
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = function()
            except StopIteration as error:  # which a future of asyncio refuses
                future.set_exception(RuntimeError(f"the function raised {error!r}"))
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for nothing."""
        with self._lock:
            if self._is_started:
                self._is_started = False
                self._calls.put(None)

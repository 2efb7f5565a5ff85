"""One process of a program:  python -m bench.against.program PACKAGE ROLE URL JOBS WARM_UP FILE

    describe          prints where the package was imported from, and the versions of its packages
    install           creates the tables
    enqueue           JOBS jobs one by one, each awaited
    enqueue-blocking  the same by a call that blocks
    enqueue-bulk      JOBS jobs by calls of 5,000
    work              a worker, until killed, that reports to FILE

WARM_UP jobs come first in each process and are not timed.

The interpreter and PACKAGE are those of the measured commit, so this module imports nothing else of
a program than PACKAGE. A rename of the project changes the package, the class and the schema, in
the same way: package `freehold`, class `Freehold`, schema `freehold`.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from bench import machine
from bench.child import print_result
from bench.contender import BULK
from bench.counting import tick

TASK = "bench.job"


class Program:
    """The public interface of the measured package, with its default settings."""

    def __init__(self, package: str, url: str) -> None:
        self.module = importlib.import_module(package)
        self.app = getattr(self.module, package.capitalize())(url)

        @self.app.task(name=TASK)  # type: ignore[untyped-decorator]
        async def job(sent: float) -> None:
            tick(sent)

        self.job = job

    async def run(self, role: str, jobs: int, warm_up_jobs: int) -> dict[str, Any]:
        if role == "describe":
            return self._describe()
        if role == "install":
            self.app.migrate()
        elif role == "enqueue":
            await self._enqueue(warm_up_jobs)
            return await self._timed(self._enqueue, jobs)
        elif role == "enqueue-blocking":
            await self._enqueue_blocking(warm_up_jobs)
            return await self._timed(self._enqueue_blocking, jobs)
        elif role == "enqueue-bulk":
            await self._enqueue_bulk(warm_up_jobs)
            return await self._timed(self._enqueue_bulk, jobs)
        elif role == "work":
            await self.app.arun_worker()
        return {}

    def _describe(self) -> dict[str, Any]:
        return {"file": self.module.__file__, "versions": machine.versions()}

    async def _timed(self, enqueue: Any, jobs: int) -> dict[str, Any]:
        began = time.perf_counter()
        await enqueue(jobs)
        return {"rate": jobs / (time.perf_counter() - began)}

    async def _enqueue(self, jobs: int) -> None:
        for _ in range(jobs):
            await self.job.aenqueue(0.0)

    async def _enqueue_blocking(self, jobs: int) -> None:
        for _ in range(jobs):
            self.job.enqueue(0.0)

    async def _enqueue_bulk(self, jobs: int) -> None:
        for start in range(0, jobs, BULK):
            count = min(BULK, jobs - start)
            await self.app.aenqueue_many([self.job.prepare(0.0) for _ in range(count)])


def main() -> None:
    package, role, url, jobs, warm_up_jobs, file = sys.argv[1:7]
    tick.report_to(file, int(warm_up_jobs))
    print_result(Program(package, url).run(role, int(jobs), int(warm_up_jobs)))


if __name__ == "__main__":
    main()

"""Progress of a long run as plain lines: a terminal and a log of continuous integration read alike.

pytest prints a dot for each test. For minutes, while the slowest tests run, that shows nothing.
`--progress` prints a line every few seconds instead, also when no test has ended meanwhile, with
the tests that have been running for long; a failed test is named at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

_EVERY_SECONDS = 15.0
#: A test that runs longer than this is named.
_LONG_SECONDS = 10.0


class Progress:
    """A plugin of the process that reports; under xdist all workers report to it."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._began = time.monotonic()
        self._running: dict[str, float] = {}
        self._total = self._ended = self._failed = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    # -- hooks of pytest ---------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._total:
            self._begin(len(ids))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self._lock:
            self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        with self._lock:
            self._running.pop(nodeid, None)
            self._ended += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._lock:
                self._failed += 1
            self._print(f"FAILED {report.nodeid}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """No letter for a test that passed or failed; the summary still counts both."""
        if report.when == "call" and report.passed:
            return "passed", "", ""
        if report.failed:
            return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")
        return None

    def pytest_sessionfinish(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._print(self._line())

    # -- lines -------------------------------------------------------------------------------

    def _begin(self, total: int) -> None:
        self._total = total
        self._print(f"{total} tests")
        self._thread.start()

    def _tick(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            self._print(self._line())

    def _line(self) -> str:
        now = time.monotonic()
        with self._lock:
            share = 100 * self._ended // max(self._total, 1)
            line = f"{share:3} %  {self._ended} of {self._total}, {self._failed} failed"
            long = [
                f"{name.removeprefix('tests/')} ({now - since:.0f} s)"
                for name, since in self._running.items()
                if now - since > _LONG_SECONDS
            ]
        return line + (f"; running: {', '.join(long)}" if long else "")

    def _print(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self._reporter.ensure_newline()
        self._reporter.write_line(f"{minutes:2}:{seconds:02}  {text}")
        self._reporter.flush()

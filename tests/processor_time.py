"""The processor time of each test file: `--cpu`.

Both cores are busy for most of a run, so it takes as long as its processor time; and beside other
work only processor time can be compared. Counted are the process of a test and the child processes
that it has waited for. All processes of xdist share the server of PostgreSQL: with `-n 0` its time
is part of each test, otherwise it is one line. (A server that a test starts is a child.)
"""

from __future__ import annotations

import resource
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

_SHOWN = 60
_TICKS_PER_SECOND = 100
_COLLECTION = "(imports and collection)"
_ATTRIBUTE = "processor_seconds"


class _Node(Protocol):
    workeroutput: dict[str, Any]


class ProcessorTime:
    """A plugin of each process with tests."""

    def __init__(self, server: int | None = None) -> None:
        self._server = server
        self._last = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """xdist sends this dictionary at the end."""
        getattr(session.config, "workeroutput", {})[_COLLECTION] = own_seconds()
        self._last = self._seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Called after each phase of a test; xdist sends the attributes of reports."""
        report = yield
        now = self._seconds()
        setattr(report, _ATTRIBUTE, now - self._last)
        self._last = now
        return report

    def _seconds(self) -> float:
        return own_seconds() + (tree_seconds(self._server) if self._server else 0.0)


class ProcessorTimeReport:
    """A plugin of the process that reports. ``server``: if its time is not in that of the tests."""

    def __init__(self, server: int | None) -> None:
        self._server = server
        self._by_file: defaultdict[str, float] = defaultdict(float)
        self._by_test: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds: float = getattr(report, _ATTRIBUTE, 0.0)
        self._by_file[report.nodeid.partition("::")[0]] += seconds
        self._by_test[report.nodeid] += seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: _Node) -> None:
        self._by_file[_COLLECTION] += getattr(node, "workeroutput", {}).get(_COLLECTION, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._server:
            self._by_file["(the server of PostgreSQL)"] = tree_seconds(self._server)
        terminalreporter.section("processor time")
        for line in self._lines():
            terminalreporter.write_line(line)

    def _lines(self) -> Iterator[str]:
        tests = Counter(name.partition("::")[0] for name in self._by_test)
        folders: defaultdict[str, float] = defaultdict(float)
        for file, seconds in self._by_file.items():
            folders[str(Path(file).parent) if file in tests else file] += seconds
        yield f"{sum(folders.values()):8.1f} s  in all"
        for name, seconds in _largest(folders):
            yield f"{seconds:8.1f} s  {name}"
        yield ""
        for name, seconds in _largest(self._by_file)[:_SHOWN]:
            yield f"{seconds:8.1f} s  {name} ({tests[name]} tests)"
        yield ""
        for name, seconds in _largest(self._by_test)[:_SHOWN]:
            yield f"{seconds:8.2f} s  {name}"


def _largest(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda each: -each[1])


def own_seconds() -> float:
    """Of this process and of the children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tree_seconds(pid: int) -> float:
    """Of a process and its children, ended ones included; on Linux."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0  # it has ended meanwhile
    own = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
    return own + sum(tree_seconds(int(child)) for child in children)

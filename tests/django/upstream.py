"""Runs the tests of Django's own task backends against Freehold, unchanged.

    python tests/django/upstream.py django FOLDER --store sqlite      of a source tree of Django
    python tests/django/upstream.py backport FOLDER --store postgres  of `django-tasks`

Before any test is imported, `FreeholdBackend` takes the place of the two backends that they test.
Exit code 0: all tests have passed but those of EXCLUDED, and of those each has failed.
"""

from __future__ import annotations

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from freehold.lab.devpostgres import DevPostgres

#: Tests that assert what the dummy or the immediate backend cannot do, or how it does it.
EXCLUDED = {
    "test_dummy_backend": {
        "test_refresh_result": "writes into the list that the dummy backend has in memory",
        "test_refresh_result_async": "the same",
    },
    "test_immediate_backend": {
        "test_cannot_get_result": "results can be read",
        "test_cannot_refresh_result": "results can be read again",
        "test_cannot_pass_run_after": "tasks can be deferred",
        "test_throws_keyboard_interrupt": "the task does not run in the thread of its caller",
    },
}
#: Of the backport only.
BACKPORT_EXCLUDED = {
    "test_compat": {"test_uses_lib_tasks_by_default": "the class of tasks is FreeholdTask"},
    "test_immediate_backend": {
        "test_get_result_from_different_request": "results can be read",
    },
}
STORE_VARIABLE = "FREEHOLD_UPSTREAM_STORE"
RESULTS_VARIABLE = "FREEHOLD_UPSTREAM_RESULTS"


def record_results() -> None:
    """Writes how each test ends: the output of the runner has the logs of tasks in between."""
    file = Path(os.environ[RESULTS_VARIABLE]).open("a", buffering=1)  # noqa: SIM115

    def recording(method: str, how: str) -> None:
        before = getattr(unittest.TestResult, method)

        def record(self: Any, test: Any, *rest: Any) -> None:
            if method != "addSubTest" or rest[1] is not None:
                file.write(f"{test.id()} {how}\n")
            before(self, test, *rest)

        setattr(unittest.TestResult, method, record)

    recording("addSuccess", "passed")
    recording("addSkip", "skipped")
    for method in ("addFailure", "addError", "addSubTest"):
        recording(method, "failed")


def replace_backends() -> None:
    """Each stand-in has a store of its own: a worker that runs until it is idle runs everything."""
    from freehold import Retry
    from freehold.contrib.django import compat
    from freehold.contrib.django.backend import FreeholdBackend
    from freehold.contrib.django.options import BackendOptions
    from freehold.store.types import JobFilter

    def options_of(name: str) -> BackendOptions:
        url = os.environ[STORE_VARIABLE]
        once = Retry(max_attempts=1)  # Django's own backends try once
        if url.startswith("postgresql"):
            return BackendOptions(url=url, schema=f"freehold_{name}", retry=once)
        return BackendOptions(url=f"{url}/{name}.db", retry=once)

    class StandIn(FreeholdBackend):
        store_name = ""

        def __init__(self, alias: str, params: dict[str, Any]) -> None:
            super().__init__(alias, params)
            self._read_options = options_of(self.store_name)  # the tests assert OPTIONS == {}
            self.app.migrate()

        def check(self, **kwargs: Any) -> list[Any]:
            """Of errors only: that the app is not installed here, and the store is not in the
            database, is so on purpose: these tests forbid all queries of that database."""
            return [each for each in super().check(**kwargs) if each.is_serious()]

    class DummyBackend(StandIn):
        store_name = "dummy"

        @property
        def results(self) -> list[Any]:
            page = self.app.operator.jobs(JobFilter(limit=1000))
            return [self.get_result(str(job.id)) for job in reversed(page.jobs)]

        def clear(self) -> None:
            page = self.app.operator.jobs(JobFilter(limit=1000))
            self.app.operator.delete(*(job.id for job in page.jobs), by="test")

    class ImmediateBackend(StandIn):
        store_name = "immediate"

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            # In a thread, as a process of its own would be: these tests call from event loops.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(self.app.run_worker, until_idle=True).result()
            result.refresh()
            return result

    package = "django.tasks" if compat.BUILT_IN else "django_tasks"
    for module, kind in (("dummy", DummyBackend), ("immediate", ImmediateBackend)):
        kind.__module__ = f"{package}.backends.{module}"
        kind.__qualname__ = kind.__name__
        __import__(kind.__module__)
        setattr(sys.modules[kind.__module__], kind.__name__, kind)


def run_django(folder: Path) -> None:
    tests = folder / "tests"
    os.chdir(tests)
    sys.path.insert(0, str(tests))
    sys.argv = ["runtests.py", "tasks", "--parallel=1", "--verbosity=2"]
    replace_backends()
    runpy.run_path(str(tests / "runtests.py"), run_name="__main__")


def run_backport(folder: Path) -> None:
    """The tests of the folder, and the installed package."""
    from django.core.management import execute_from_command_line

    os.chdir(folder)  # else `tests` would be a folder of this project
    sys.path.append(str(folder))
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    sys.argv = ["manage.py", "test", "tests", "--verbosity=2", f"--top-level-directory={folder}"]
    replace_backends()
    execute_from_command_line(sys.argv)


def judged(kind: str, results: str) -> bool:
    """Compares the results of a run with what must pass and what must not."""
    ended = {
        tuple(test.split(".")[-3::2]): how for test, how in map(str.split, results.splitlines())
    }
    excluded = {
        (file, name): why for file, names in EXCLUDED.items() for name, why in names.items()
    }
    if kind == "backport":
        for file, names in BACKPORT_EXCLUDED.items():
            excluded |= {(file, name): why for name, why in names.items()}
    failed = {test for test, how in ended.items() if how == "failed"}
    for (file, name), why in sorted(excluded.items()):
        print(f"  excluded: {file}.{name}: {why}")
    for test in sorted(failed - excluded.keys()):
        print(f"  FAILED: {'.'.join(test)}")
    for test in sorted(excluded.keys() - failed):
        print(f"  PASSED, though excluded: {'.'.join(test)}")
    counts = Counter(ended.values())
    print(
        f"{counts['passed']} of {len(ended)} tests passed, {counts['skipped']} skipped, "
        f"{len(failed)} failed"
    )
    return bool(ended) and failed == excluded.keys()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["django", "backport"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", required=True, choices=["sqlite", "postgres"])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    if given.inside:
        record_results()
        {"django": run_django, "backport": run_backport}[given.kind](given.folder)
        return 0
    with tempfile.TemporaryDirectory() as folder, _store(given.store, folder) as store:
        results = Path(folder) / "results"
        results.touch()
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--inside"],
            env={**os.environ, STORE_VARIABLE: store, RESULTS_VARIABLE: str(results)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1200,
            check=False,
        )
        is_good = judged(given.kind, results.read_text())
    if not is_good:
        print(done.stdout)
    return 0 if is_good else 1


@contextmanager
def _store(kind: str, folder: str) -> Iterator[str]:
    """A folder for files, or the URL of a server of its own."""
    if kind == "sqlite":
        yield folder
        return
    with DevPostgres() as server:
        yield server.url


if __name__ == "__main__":
    sys.exit(main())

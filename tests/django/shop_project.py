"""The project of these tests in processes of its own: Django has one configuration per process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from freehold import Freehold, Job, JobFilter

PROJECT = Path(__file__).parent / "project"
LIMIT_SECONDS = 120.0

_SCRIPT = """
import json, sys
import django
django.setup()
from shop import tasks
from shop.models import Order
def out(value): print("OUT " + json.dumps(value))
exec(sys.argv[1])
"""


class Project:
    """``database``: the path of a file, or the URL of a PostgreSQL database."""

    def __init__(self, database: str, **variables: str) -> None:
        self.database = database
        own = ("FREEHOLD_URL", "FREEHOLD_APP", "FREEHOLD_SCHEMA", "DATABASE_URL")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in own},
            "SHOP_DATABASE": database,
            "DJANGO_SETTINGS_MODULE": "website.settings",
            **variables,
        }
        self.app = Freehold(database)

    def manage(self, *arguments: str, code: int = 0, cwd: Path = PROJECT) -> str:
        """Runs `manage.py`. Returns everything that it has written."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=cwd,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS * 2,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def migrate(self) -> None:
        self.manage("migrate", "--run-syncdb", "-v", "0")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(PROJECT / "manage.py"), *arguments]

    def run(self, script: str) -> Any:
        """Runs Python in the project. Returns the value that the script has passed to `out`."""
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, script],
            cwd=PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        values = [line[4:] for line in done.stdout.splitlines() if line.startswith("OUT ")]
        return json.loads(values[-1]) if values else None

    @contextlib.contextmanager
    def started(self, *arguments: str, cwd: Path = PROJECT) -> Iterator[subprocess.Popen[bytes]]:
        """A process of `manage.py`, with the processes that it starts in its group."""
        process = subprocess.Popen(
            self.command(*arguments), cwd=cwd, env=self.environment, start_new_session=True
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def jobs(self) -> tuple[Job, ...]:
        return self.app.operator.jobs(JobFilter(limit=1000)).jobs

    def wait_for_ends(self) -> tuple[Job, ...]:
        """Until every job has ended."""
        wait_for(lambda: all(job.report for job in self.jobs()))
        return self.jobs()


def wait_for(condition: Callable[[], Any], *, seconds: float = LIMIT_SECONDS) -> Any:
    """Looks until there is something."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found

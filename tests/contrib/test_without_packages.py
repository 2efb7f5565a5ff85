"""The core imports no framework and no tool of freehold.contrib, and works without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("N19", "N20")
OTHERS = (
    "django",
    "fastapi",
    "jinja2",
    "litestar",
    "opentelemetry",
    "pytest",
    "sentry_sdk",
    "starlette",
    "structlog",
)
_PROGRAM = f"""
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OTHERS!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NotInstalled())
from freehold import Depends, Freehold
from freehold.cli import main
from freehold.logs import AttemptFilter, add_attempt
from freehold.testing import Harness

app = Freehold("jobs.db", lifespan=lambda: __import__("contextlib").nullcontext(3))

@app.task(name="task")
def task(ctx, more=Depends(lambda: 4)):
    return ctx.deps + more

job = task.enqueue()
app.run_worker(until_idle=True)
assert job.result() == 7
with Harness(app) as queue:
    task.enqueue()
    assert queue.run().succeeded == 1
assert not any(name.startswith("freehold.contrib") for name in sys.modules)
"""


def test_an_app_runs_jobs_without_any_of_them_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", _PROGRAM]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

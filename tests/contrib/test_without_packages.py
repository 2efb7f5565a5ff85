"""The core imports no framework and no tool of freehold.contrib, and works without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("N19", "N20")
OTHERS = (
    "asgiref",
    "django",
    "django_tasks",
    "fastapi",
    "gunicorn",
    "jinja2",
    "litestar",
    "opentelemetry",
    "pytest",
    "sentry_sdk",
    "starlette",
    "structlog",
    "uvicorn",
)
#: What the package itself needs; and where they are installed, uvloop of the extra `fast`, and
#: typing_extensions, which msgspec imports.
ALLOWED = {"click", "cronsim", "msgspec", "rich", "typing_extensions", "uvloop"}
_PROGRAM = f"""
import sys, sysconfig

tried = []
before = set(sys.modules)

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OTHERS!r}:
            tried.append(name)
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
site = sysconfig.get_path("purelib")
files = {{name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}}
others = {{name.partition(".")[0] for name, file in files.items() if str(file).startswith(site)}}
assert others <= {ALLOWED!r}, others
assert not tried, tried
assert not any(name.startswith("freehold.contrib") for name in sys.modules)
"""


def test_an_app_runs_jobs_without_any_of_them_installed(tmp_path: Path) -> None:
    """A program that Python reads from its standard input has no name, and needs none."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=_PROGRAM,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


_IMPORTS = """
import importlib, sys

for package, module, extra in (
    ("sentry_sdk", "freehold.contrib.sentry", "`freehold[sentry]`"),
    ("opentelemetry", "freehold.contrib.otel", "`freehold[otel]`"),
    ("starlette", "freehold.contrib.fastapi", "`freehold[http]`"),
    ("litestar", "freehold.contrib.litestar", "`litestar`"),
    ("jinja2", "freehold.dashboard", "`freehold[http]`"),
    ("django_tasks", "freehold.contrib.django.compat", "django-tasks"),
):
    sys.modules[package] = sys.modules["django.tasks"] = None
    try:
        importlib.import_module(module)
    except Exception as error:
        assert f"install {extra}" in str(error) or "django-tasks" in str(error), error
        assert package in str(error), error
    else:
        raise AssertionError(module)
    del sys.modules[package]
"""


def test_a_missing_package_is_named_with_what_to_install() -> None:
    command = [sys.executable, "-c", _IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr

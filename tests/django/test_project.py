"""The tests inside of the project, and the core without Django."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.django.shop_project import PROJECT, Project

#: Everything that a worker imports, and a run of a job, in a process that cannot import Django.
_WITHOUT_DJANGO = """
import sys
sys.modules["django"] = sys.modules["django_tasks"] = None
import freehold, freehold.cli.worker, freehold.cli.up, freehold.testing, freehold.http.server
app = freehold.Freehold("jobs.db")
@app.task(name="add")
def add(a: int, b: int) -> int:
    return a + b
job = add.enqueue(1, 2)
assert app.run_worker(until_idle=True) == 0
assert job.result() == 3
app.close()
"""


@pytest.mark.requirement("N18")
def test_the_tests_of_the_project_pass(project: Project) -> None:
    """They are Django's own `TestCase`, and need its test runner and its test database."""
    project.environment["SHOP_ADMIN"] = "yes"
    files = sorted((PROJECT / "shop").glob("*_tests.py"))
    output = project.manage("test", *(f"shop.{file.stem}" for file in files))
    assert "\nOK\n" in output


@pytest.mark.requirement("N18")
def test_the_core_runs_where_django_is_not_installed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_DJANGO], cwd=tmp_path, check=True)


def test_the_core_does_not_import_django() -> None:
    script = "import sys, freehold, freehold.cli.worker, freehold.cli.up, freehold.http.server\n"
    script += "assert not {'django', 'django_tasks', 'asgiref'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)

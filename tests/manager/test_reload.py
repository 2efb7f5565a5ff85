"""`freehold up --reload`: changed source files replace the workers, by drain."""

from __future__ import annotations

import os
from pathlib import Path

from freehold import NewJob
from freehold.manager.reload import modification_times
from tests.manager.service import ROOT, Service
from tests.worker.fleet import eventually

_APP = """
from freehold import Freehold
app = Freehold()
@app.task(name="number")
async def number() -> int:
    return {number}
"""


def test_changed_code_is_run_by_new_workers(sqlite_service: Service) -> None:
    service = sqlite_service
    project = service.folder / "project"
    project.mkdir()
    source = project / "shop.py"
    source.write_text(_APP.format(number=1))
    paths = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    service.up(
        "--reload", "--default-count", "1", at=project, FREEHOLD_APP="shop:app", PYTHONPATH=paths
    )
    (first,) = service.until_registered(1)
    assert _result(service) == 1
    source.write_text(_APP.format(number=22))
    eventually(lambda: [w.pid for w in service.registered()] not in ([], [first.pid]))
    eventually(lambda: first.pid not in service.worker_pids())
    assert _result(service) == 22
    # With code that cannot be imported the manager waits until it changes again.
    source.write_text("this is no Python")
    eventually(lambda: service.logged("ended right after its start with code 2"))
    source.write_text(_APP.format(number=333))
    assert _result(service) == 333


def _result(service: Service) -> object:
    job_id = service.app._submit(NewJob(task="number")).id
    eventually(lambda: service.all_succeeded([job_id]))
    report = service.app._client.store.read([job_id])[job_id].report
    assert report is not None
    return report.result


def test_only_sources_of_the_project_are_watched(tmp_path: Path) -> None:
    for name in (
        "a.py",
        "b.toml",
        "c.txt",
        "deep/d.py",
        ".hidden/e.py",
        "node_modules/f.py",
        "venv/pyvenv.cfg",
        "venv/lib/g.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    watched = {str(path.relative_to(tmp_path)) for path in modification_times(tmp_path)}
    assert watched == {"a.py", "b.toml", "deep/d.py"}

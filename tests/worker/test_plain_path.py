"""A plain job makes no call into the features that it does not use."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import freehold
from freehold import Context, Extension, Freehold

pytestmark = pytest.mark.requirement("N6", "N13", "N19")
_PACKAGE = str(Path(freehold.__file__).parent)
FEATURES = ("dependencies.py", "extensions.py", "lifespan.py", "logs.py", "contrib/")


def calls_into_features(path: Path, jobs: int, *extensions: Extension) -> Counter[str]:
    """Of an app that enqueues and runs so many jobs, in coroutines and in threads."""
    app = Freehold(str(path))
    for extension in extensions:
        app.extend(extension)

    @app.task(name="coroutine")
    async def coroutine(n: int) -> int:
        return n

    @app.task(name="function")
    def function(n: int) -> int:
        return n

    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename.removeprefix(f"{_PACKAGE}/")
        if event == "call" and file.startswith(FEATURES):
            calls[f"{file} {frame.f_code.co_qualname}"] += 1

    app.migrate()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        stored = [task.enqueue(n) for n in range(jobs) for task in (coroutine, function)]
        app.run_worker(until_idle=True)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert [job.result() for job in stored] == [n for n in range(jobs) for _ in range(2)]
    app.close()
    return calls


def test_more_jobs_make_no_more_calls(tmp_path: Path) -> None:
    assert calls_into_features(tmp_path / "one.db", 1) == calls_into_features(
        tmp_path / "many.db", 20
    )


def test_an_extension_is_counted(tmp_path: Path) -> None:
    class Around(Extension):
        def attempt(self, ctx: Context) -> AbstractContextManager[None]:
            return nullcontext()

    one = calls_into_features(tmp_path / "one.db", 1, Around())
    many = calls_into_features(tmp_path / "many.db", 20, Around())
    assert many.total() - one.total() >= 2 * 19

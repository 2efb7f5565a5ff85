"""An app on a store for one test, with processes that end before it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from freehold import Freehold
from tests.worker.handler_record import RECORD_VARIABLE, Record


class Processes(Protocol):
    """The processes of a test, and the record of their handlers."""

    record: Record

    def close(self) -> None: ...


P = TypeVar("P", bound=Processes)


def app_with_processes(
    make: Callable[[Freehold, str, Path], P],
    app: Freehold,
    url: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[P]:
    """The path of the record is in the environment, for workers inside this process too."""
    app.url = url
    app.migrate()
    processes = make(app, url, folder)
    monkeypatch.setenv(RECORD_VARIABLE, str(processes.record.path))
    try:
        yield processes
    finally:
        processes.close()
        app.close()

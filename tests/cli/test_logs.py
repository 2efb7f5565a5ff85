"""Lines of the log: short times in a terminal, full times in files and pipes."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator

import pytest

from freehold.cli.logs import set_up_logs


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def logged(capsys: pytest.CaptureFixture[str]) -> str:
    logging.getLogger("freehold").warning("worker %s starts", "w1")
    return capsys.readouterr().err


def test_a_pipe_gets_the_full_time_and_the_name_of_the_logger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logs("info", "text")
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"
    assert re.fullmatch(rf"{time} warning freehold: worker w1 starts\n", logged(capsys))


def test_a_terminal_gets_the_time_of_day(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    set_up_logs("info", "text")
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning freehold: worker w1 starts\n", logged(capsys))
    monkeypatch.delenv("NO_COLOR")
    set_up_logs("info", "text")
    assert "\x1b[33mwarning" in logged(capsys)

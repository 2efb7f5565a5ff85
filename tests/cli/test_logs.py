"""Lines of the log: short times in a terminal, full times in files and pipes."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator

import msgspec
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


HOSTILE = "\x1b]0;title\x07\r\n2026-01-01 info job 1 succeeded \x85\x9b\u2028\u2029\u202e\ud800"


def log_hostile_error(capsys: pytest.CaptureFixture[str]) -> str:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        logging.getLogger("freehold").exception("job 7 failed: %s", error)
    return capsys.readouterr().err


def test_the_text_of_a_handler_cannot_forge_a_line_or_drive_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logs("info", "text")
    first, *trace = log_hostile_error(capsys).removesuffix("\n").split("\n")
    assert first.endswith(
        r"job 7 failed: \x1b]0;title\x07\r\n2026-01-01 info job 1 succeeded "
        r"\x85\x9b\u2028\u2029\u202e\ud800"
    )
    assert trace[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") and line.isprintable() for line in trace)


def test_a_json_log_has_escapes_for_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs("info", "json")
    line = log_hostile_error(capsys).removesuffix("\n")
    assert line.isprintable()
    document = msgspec.json.decode(line)
    assert document["message"] == "job 7 failed: " + HOSTILE.replace("\ud800", r"\ud800")
    assert r"\ud800" in document["trace"]

"""A seat is taken for exactly as long as its worker lives, whoever dies how."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.errors import BadSettings
from freehold.manager.process_slots import (
    ProcessSlot,
    SlotOwner,
    folder_of,
    manager_in,
    manager_lock,
    slots_in,
)
from freehold.manager.spawn import start_on
from tests.worker.fleet import eventually

#: Sits down, does something that could pass the seat on, says so, and waits to be killed.
_SITTER = """
import os, subprocess, sys, time
from freehold.manager.process_slots import Sitter, sit
sit(int(sys.argv[sys.argv.index("--seat") + 1]), Sitter(os.getpid(), "w1"))
if "forks" in sys.argv and os.fork() == 0:
    time.sleep(60)
if "starts" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
print("seated", flush=True)
time.sleep(60)
"""


class Sitting:
    """A process on a seat, with whatever it has started."""

    def __init__(self, seat: ProcessSlot, *how: str) -> None:
        def start(arguments: object, file: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", _SITTER, *arguments, *how]  # type: ignore[misc]
            return subprocess.Popen(
                command, stdout=subprocess.PIPE, pass_fds=(file,), start_new_session=True
            )

        process = start_on(seat, seat.path.parent, start)
        assert process is not None
        self.process = process

    def until_seated(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"seated\n"

    def __enter__(self) -> Sitting:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def test_a_seat_is_taken_from_before_the_first_word_until_the_end(tmp_path: Path) -> None:
    seat = ProcessSlot(tmp_path / "seat-1")
    assert not seat.is_taken()
    with Sitting(seat) as sitting:
        assert seat.is_taken()
        assert seat.take() is None
        assert seat.sitter() is None
        sitting.until_seated()
        assert seat.sitter() == SlotOwner(sitting.process.pid, "w1")
        sitting.process.kill()
        sitting.process.wait()
        assert not seat.is_taken()


@pytest.mark.parametrize("how", ["forks", "starts"])
def test_what_a_worker_leaves_behind_does_not_keep_its_seat(tmp_path: Path, how: str) -> None:
    seat = ProcessSlot(tmp_path / "seat-1")
    with Sitting(seat, how) as sitting:
        sitting.until_seated()
        assert seat.is_taken()
        sitting.process.kill()
        sitting.process.wait()
        eventually(lambda: not seat.is_taken())


def test_a_new_sitter_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    seat = ProcessSlot(tmp_path / "seat-1")
    with Sitting(seat) as first:
        first.until_seated()
    assert seat.sitter() is not None
    file = seat.take()
    assert file is not None
    assert seat.sitter() is None
    os.close(file)


def test_seats_of_a_larger_manager_are_seen_while_they_are_there(tmp_path: Path) -> None:
    (tmp_path / "seat-9").touch()
    names = [seat.path.name for seat in slots_in(tmp_path, 2)]
    assert names == ["seat-1", "seat-2", "seat-9"]


def test_there_is_one_manager_to_a_folder_and_everybody_can_see_which(tmp_path: Path) -> None:
    assert manager_in(tmp_path) is None
    with manager_lock(tmp_path, "m1") as first, manager_lock(tmp_path, "m2") as second:
        assert (first, second) == (True, False)
        assert manager_in(tmp_path) == "m1"
    assert manager_in(tmp_path) is None
    with manager_lock(tmp_path, "m2") as taken:
        assert taken
        assert manager_in(tmp_path) == "m2"
    assert manager_in(tmp_path / "removed") is None


def test_a_folder_is_private_and_one_for_each_store_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = {folder_of(store, name) for store in ("a", "b") for name in ("x", "y")}
    assert len(folders) == 4
    assert folder_of("a", "x") in folders
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_folder_that_somebody_else_could_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"freehold-{os.getuid()}").mkdir()
    (tmp_path / f"freehold-{os.getuid()}").chmod(0o777)
    with pytest.raises(BadSettings, match="private folder"):
        folder_of("a", "x")

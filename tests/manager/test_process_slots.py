"""A slot is locked for exactly as long as its worker process runs, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
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
from freehold.manager.spawn import start_in
from tests.worker.fleet import eventually

#: Takes its slot, does something that could pass the file on, and waits to be killed.
_OWNER = """
import os, subprocess, sys, time
from freehold.manager.process_slots import SlotOwner, take_slot
take_slot(int(sys.argv[sys.argv.index("--slot-file") + 1]), SlotOwner(os.getpid(), "w1"))
if "forks" in sys.argv and os.fork() == 0:
    time.sleep(60)
if "starts" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
print("taken", flush=True)
time.sleep(60)
"""


class OwnerProcess:
    """A process in a slot, with its child processes."""

    def __init__(self, slot: ProcessSlot, *modes: str) -> None:
        def start(arguments: object, file: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", _OWNER, *arguments, *modes]  # type: ignore[misc]
            return subprocess.Popen(
                command, stdout=subprocess.PIPE, pass_fds=(file,), start_new_session=True
            )

        process = start_in(slot, slot.path.parent, start)
        assert process is not None
        self.process = process

    def wait_until_taken(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"taken\n"

    def __enter__(self) -> OwnerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def test_a_slot_is_taken_from_before_its_owner_is_written_until_the_end(tmp_path: Path) -> None:
    slot = ProcessSlot(tmp_path / "slot-1")
    assert not slot.is_taken()
    with OwnerProcess(slot) as owner:
        assert slot.is_taken()
        assert slot.take() is None
        assert slot.owner() is None
        owner.wait_until_taken()
        assert slot.owner() == SlotOwner(owner.process.pid, "w1")
        owner.process.kill()
        owner.process.wait()
        assert not slot.is_taken()


@pytest.mark.parametrize("mode", ["forks", "starts"])
def test_child_processes_of_a_dead_worker_do_not_keep_its_slot(tmp_path: Path, mode: str) -> None:
    slot = ProcessSlot(tmp_path / "slot-1")
    with OwnerProcess(slot, mode) as owner:
        owner.wait_until_taken()
        assert slot.is_taken()
        owner.process.kill()
        owner.process.wait()
        eventually(lambda: not slot.is_taken())


def test_the_owner_before_is_erased_when_a_slot_is_taken_again(tmp_path: Path) -> None:
    slot = ProcessSlot(tmp_path / "slot-1")
    with OwnerProcess(slot) as owner:
        owner.wait_until_taken()
    assert slot.owner() is not None
    file = slot.take()
    assert file is not None
    assert slot.owner() is None
    os.close(file)


def test_slots_of_a_manager_with_more_slots_are_listed_too(tmp_path: Path) -> None:
    (tmp_path / "slot-9").touch()
    names = [slot.path.name for slot in slots_in(tmp_path, 2)]
    assert names == ["slot-1", "slot-2", "slot-9"]


def test_a_folder_has_one_manager_whose_name_can_be_read(tmp_path: Path) -> None:
    assert manager_in(tmp_path) is None
    with manager_lock(tmp_path, "m1") as first, manager_lock(tmp_path, "m2") as second:
        assert (first, second) == (True, False)
        assert manager_in(tmp_path) == "m1"
    assert manager_in(tmp_path) is None
    with manager_lock(tmp_path, "m2") as taken:
        assert taken
        assert manager_in(tmp_path) == "m2"
    assert manager_in(tmp_path / "removed") is None


@pytest.fixture
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a runtime folder nor a home; temporary files are in the test's folder."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("no_folders")
def test_a_folder_is_private_and_one_for_each_store_and_name() -> None:
    folders = {folder_of(store, name) for store in ("a", "b") for name in ("x", "y")}
    assert len(folders) == 4
    assert folder_of("a", "x") in folders
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


@pytest.mark.usefixtures("no_folders")
def test_a_folder_that_other_users_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"freehold-{os.getuid()}").mkdir()
    (tmp_path / f"freehold-{os.getuid()}").chmod(0o777)
    with pytest.raises(BadSettings, match="private folder"):
        folder_of("a", "x")


@pytest.mark.usefixtures("no_folders")
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_private_folders_of_the_user_come_before_the_one_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """There another user can take our name first."""
    (tmp_path / f"freehold-{os.getuid()}").mkdir(mode=0o700)
    home, runtime = tmp_path / "home", tmp_path / "runtime"
    found = []
    for name, folder in (("HOME", home), ("XDG_RUNTIME_DIR", runtime)):
        folder.mkdir()
        folder.chmod(mode)
        monkeypatch.setenv(name, str(folder))
        found.append(folder_of("a", "x").parent)
    if mode == 0o700:
        assert found == [home / ".cache" / f"freehold-{socket.gethostname()}", runtime / "freehold"]
    else:
        assert found == [tmp_path / f"freehold-{os.getuid()}"] * 2

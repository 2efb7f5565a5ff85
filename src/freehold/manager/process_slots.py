"""Process slots: locked files that bound the number of worker processes, whatever is killed when.

A slot is a file, and a process occupies it by holding its lock. The kernel keeps the lock for as
long as a process has the file open, and releases it when the last one ends. The manager locks a
slot *before* it starts a worker, passes the open file on to it, and closes its own copy. So the
slot of a worker is locked from before its start until its end, and with n slots there are at most n
workers, draining ones included. The store cannot count them: it does not know a worker that has
just been started.

The manager lock is such a file too: a folder has one manager, and its workers check the lock to see
whether a manager is alive.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from freehold.decoders import decoder
from freehold.fork_safety import ForkAware, notice_forks
from freehold.private_folder import private_folder

_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_MANAGER_LOCK = "manager"
_SLOT = "slot-"
_TEXT_BYTES = 4096


class _OpenSlots(ForkAware):
    """The open slot files of this process, which a child must not keep open."""

    def __init__(self) -> None:
        self.files: set[int] = set()
        notice_forks(self)

    def after_fork_in_child(self) -> None:
        for file in self.files:
            os.close(file)
        self.files.clear()


_open_slots = _OpenSlots()


class SlotOwner(msgspec.Struct, frozen=True):
    """The worker in a slot, as it wrote itself into the file."""

    pid: int
    owner: str


_owner_of = decoder(SlotOwner).decode


def folder_of(store: str, name: str) -> Path:
    """The folder of a manager: one per user, store and name on this machine."""
    mark = hashlib.sha256(store.encode()).hexdigest()[:16]
    folder = private_folder() / f"{mark}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


class ProcessSlot:
    """A slot for one worker process, as the manager sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(self) -> int | None:
        """The open and locked file, for a worker to inherit; None if the slot is taken."""
        file = _open(self.path)
        if not _lock(file, fcntl.LOCK_EX):
            os.close(file)
            return None
        os.ftruncate(file, 0)  # the owner before has ended
        return file

    def is_taken(self) -> bool:
        file = _open(self.path)
        try:
            return not _lock(file, fcntl.LOCK_EX)
        finally:
            os.close(file)

    def owner(self) -> SlotOwner | None:
        """The owner of a taken slot; None until the worker has written itself into the file."""
        with contextlib.suppress(msgspec.DecodeError, FileNotFoundError):
            return _owner_of(self.path.read_bytes())
        return None


def slots_in(folder: Path, count: int) -> list[ProcessSlot]:
    """Slots 1 to ``count``, and further files left by a manager with more slots."""
    wanted = {folder / f"{_SLOT}{number}" for number in range(1, count + 1)}
    return [ProcessSlot(path) for path in sorted(wanted | set(folder.glob(f"{_SLOT}*")))]


def take_slot(file: int, owner: SlotOwner) -> None:
    """In the worker: write its name into the slot. No child process may inherit the file."""
    os.set_inheritable(file, False)
    _open_slots.files.add(file)
    os.ftruncate(file, 0)
    os.pwrite(file, msgspec.json.encode(owner), 0)


def leave_slot(file: int) -> None:
    """Release the slot without ending the process."""
    _open_slots.files.discard(file)
    os.close(file)


@contextlib.contextmanager
def manager_lock(folder: Path, manager: str) -> Iterator[bool]:
    """Hold the manager lock of this folder; False if another manager holds it."""
    file = _open(folder / _MANAGER_LOCK)
    try:
        taken = _lock(file, fcntl.LOCK_EX)
        if taken:
            os.ftruncate(file, 0)
            os.pwrite(file, manager.encode(), 0)
        yield taken
    finally:
        os.close(file)


def manager_in(folder: Path) -> str | None:
    """The name of the folder's manager; "" until it has written it; None if there is no manager.

    The check takes a shared lock for a moment, so a manager has to try its lock more than once.
    """
    try:
        file = _open(folder / _MANAGER_LOCK)
    except FileNotFoundError:  # the folder was removed, so no manager can use it
        return None
    try:
        if _lock(file, fcntl.LOCK_SH):
            return None
        return os.pread(file, _TEXT_BYTES, 0).decode(errors="replace")
    finally:
        os.close(file)


def touch(folder: Path) -> None:
    """Keep the files young for programs that remove old files."""
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            os.utime(path)


def is_intact(folder: Path) -> bool:
    """False if a program has removed the files nevertheless."""
    return (folder / _MANAGER_LOCK).exists()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

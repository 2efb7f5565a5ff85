"""Seats: how there are never too many workers, whoever is killed and whenever.

A seat is a file, and to sit on it is to hold its lock. The kernel keeps such a lock for as long
as a process has the file open, and takes it back the moment the last one is gone. The manager
takes a seat *before* it starts a worker, hands the open file down to it, and closes its own. So
no worker lives for a moment without its seat being taken, not even one that has not said a word
yet, and with n seats there are at most n workers, draining ones included. What a database knows
of workers comes too late for that: it does not know those that have just been started.

The manager's chair is such a file too: there is one manager to a folder, and workers look
whether somebody sits there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from freehold.decoders import decoder
from freehold.errors import BadSettings

_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_MANAGER_LOCK = "manager"
_SLOT = "seat-"
_TEXT_BYTES = 4096
#: Seats of this process.
_taken: set[int] = set()


class SlotOwner(msgspec.Struct, frozen=True):
    """Who sits there, as written down by itself."""

    pid: int
    owner: str


_owner_of = decoder(SlotOwner).decode


def folder_of(store: str, name: str) -> Path:
    """The folder of a manager: the same for each that this user starts here for this store."""
    base = Path(tempfile.gettempdir()) / f"freehold-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BadSettings(f"{base} is not a private folder of this user: remove it")
    mark = hashlib.sha256(store.encode()).hexdigest()[:16]
    folder = base / f"{mark}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


class ProcessSlot:
    """A place for one worker, as the manager sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(self) -> int | None:
        """The open file, locked, for a worker to inherit; None if somebody sits there."""
        file = _open(self.path)
        if not _lock(file, fcntl.LOCK_EX):
            os.close(file)
            return None
        os.ftruncate(file, 0)  # whoever sat there before is gone
        return file

    def is_taken(self) -> bool:
        file = _open(self.path)
        try:
            return not _lock(file, fcntl.LOCK_EX)
        finally:
            os.close(file)

    def sitter(self) -> SlotOwner | None:
        """None as long as nobody has said a word. Ask only for a seat that is taken."""
        with contextlib.suppress(msgspec.DecodeError, OSError):
            return _owner_of(self.path.read_bytes())
        return None


def slots_in(folder: Path, count: int) -> list[ProcessSlot]:
    """So many, and those that a manager with more of them may have left taken."""
    wanted = {folder / f"{_SLOT}{number}" for number in range(1, count + 1)}
    return [ProcessSlot(path) for path in sorted(wanted | set(folder.glob(f"{_SLOT}*")))]


def take_slot(file: int, sitter: SlotOwner) -> None:
    """In the worker: say who sits here. Nobody whom it starts or forks shall keep the seat."""
    os.set_inheritable(file, False)
    _taken.add(file)
    os.ftruncate(file, 0)
    os.pwrite(file, msgspec.json.encode(sitter), 0)


def leave_slot(file: int) -> None:
    """The seat is free again. A process that ends does so by ending."""
    _taken.discard(file)
    os.close(file)


def _close_in_child() -> None:
    for file in _taken:
        os.close(file)
    _taken.clear()


os.register_at_fork(after_in_child=_close_in_child)


@contextlib.contextmanager
def manager_lock(folder: Path, manager: str) -> Iterator[bool]:
    """Be the manager of this folder; False if somebody else is."""
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
    """Who manages: its name, "" while it has not yet written it down, None if nobody does.

    Looking takes a shared lock for a moment: whoever wants the chair has to try more than once.
    """
    try:
        file = _open(folder / _MANAGER_LOCK)
    except OSError:  # the folder was removed: nobody can manage us from there
        return None
    try:
        if _lock(file, fcntl.LOCK_SH):
            return None
        return os.pread(file, _TEXT_BYTES, 0).decode(errors="replace")
    finally:
        os.close(file)


def touch(folder: Path) -> bool:
    """Show whoever cleans up old files that these are in use. False if somebody has done so."""
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            os.utime(path)
    return (folder / _MANAGER_LOCK).exists()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

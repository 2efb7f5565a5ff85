"""The processes of this machine and their arguments."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Runs a command line of Freehold on asyncio's own event loop.
WITHOUT_UVLOOP = """
from freehold.worker import event_loop
event_loop._factory = lambda: None
from freehold.cli import main
main()
"""


def with_open_files(limit: int | None, command: list[str]) -> list[str]:
    """The command, in a process that can open so many files and cannot raise its limit."""
    return (
        command if limit is None else ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *command]
    )


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Within the block this process can open no file; those that are open stay open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def arguments_of(group: int | None = None) -> list[str]:
    """The arguments of every running process, or of those in this group. `ps` may be missing where
    `/proc` exists."""
    if not Path("/proc/self").exists():
        fields = (line.split(None, 2) for line in _ps_output().splitlines())
        running = (each for each in fields if len(each) == 3 and not each[1].startswith("Z"))
        return [arguments for pgid, _, arguments in running if group in (None, int(pgid))]
    return [arguments for pgid, arguments in _running() if group in (None, pgid)]


def _ps_output() -> str:
    command = ["ps", "-A", "-ww", "-o", "pgid=,stat=,args="]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _running() -> Iterator[tuple[int, str]]:
    """Group and arguments."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # The name is in brackets and can contain any character.
            state, _, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            arguments = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            if state != "Z":
                yield int(group), arguments


def pids_with(mark: bytes) -> list[int]:
    """Processes with this text in their arguments. A zombie has no arguments. Some tests call this
    fifty times a second, so it must be fast."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (a path for each process takes twice as long)
        if name.isdigit():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{name}/cmdline", "rb", buffering=0) as arguments,  # noqa: PTH123
            ):
                if mark in arguments.read():
                    found.append(int(name))
    return found

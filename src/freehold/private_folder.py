"""The folder of this user on this machine, for process slots and the API's own token.

`$XDG_RUNTIME_DIR`, else `~/.cache`, else the folder for temporary files. In the last one, another
user can create a folder of our name first: it is noticed, but not mended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from freehold.errors import BadSettings


def private_folder() -> Path:
    for folder in _candidates():
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(folder.parent) and _is_private(folder):
                return folder
    folder = Path(tempfile.gettempdir()) / f"freehold-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadSettings(
            f"no folder for this user's files ({error}): set XDG_RUNTIME_DIR to a private folder"
        ) from None
    if not _is_private(folder):
        raise BadSettings(
            f"{folder} is not a private folder of this user: remove it, or set XDG_RUNTIME_DIR to "
            "a private folder"
        )
    return folder


def _candidates() -> Iterator[Path]:
    """Folders inside a folder in which no other user can create anything."""
    runtime, home = (Path(os.environ.get(name, "")) for name in ("XDG_RUNTIME_DIR", "HOME"))
    if runtime.is_absolute() and _is_private(runtime):
        yield runtime / "freehold"
    if home.is_absolute() and _is_private(home):
        # A home may be shared between machines, but processes are not.
        yield home / ".cache" / f"freehold-{socket.gethostname()}"


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not found.st_mode & 0o022

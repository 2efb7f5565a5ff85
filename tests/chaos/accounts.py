"""The account of servers that refuse to run as root, and the ownership of their folders."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any


def unprivileged() -> dict[str, Any]:
    """Options for `subprocess`."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def change_owner(folder: Path) -> None:
    if options := unprivileged():
        os.chown(folder, options["user"], options["group"])

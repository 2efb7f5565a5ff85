"""The development server: it keeps its data, and never outlives the process that started it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from freehold.lab import devpostgres
from freehold.lab.devpostgres import DevPostgres, DevPostgresError

SETTINGS = {"fsync": "off"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can reach. pytest's own folders are private, and where the tests run
    as root, PostgreSQL runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def no_server_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(devpostgres, "_wheel_folder", lambda: None)
    monkeypatch.setenv("FREEHOLD_POSTGRES_BIN", str(tmp_path))


def query(url: str, statement: bytes) -> object:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"timeout while waiting until {what}"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_data_survives_a_crash_of_the_server() -> None:
    with DevPostgres() as server:
        query(server.url, b"CREATE TABLE kept AS SELECT 42 AS answer")
        server.stop("immediate")
        assert not server.is_running
        server.start()
        assert query(server.url, b"SELECT answer FROM kept") == 42


@pytest.mark.parametrize("is_relative", [False, True])
def test_data_in_a_given_directory_survives_the_launcher(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    monkeypatch.chdir(open_folder)
    data = Path("data") if is_relative else open_folder / "data"
    with DevPostgres(data=data, settings=SETTINGS) as server:
        query(server.url, b"CREATE TABLE kept AS SELECT 42 AS answer")
    with DevPostgres(data=data, settings=SETTINGS) as server:
        assert query(server.url, b"SELECT answer FROM kept") == 42


def test_settings_and_port_reach_the_server() -> None:
    with DevPostgres(port=0, settings=SETTINGS) as server:
        assert query(server.tcp_url, b"SHOW fsync") == "off"
        assert query(server.url, b"SHOW listen_addresses") == "127.0.0.1"


def test_the_port_needs_the_password_of_its_url(open_folder: Path) -> None:
    """Every account of the machine can reach the port."""
    data = open_folder / "data"
    with DevPostgres(port=0, data=data, settings=SETTINGS) as server:
        assert query(server.tcp_url, b"SELECT 1") == 1
        password = conninfo_to_dict(server.tcp_url)["password"]
        assert isinstance(password, str)
        for wrong in ("", "postgres", password[:-1]):
            url = make_conninfo(server.tcp_url, password=wrong)
            with pytest.raises(psycopg.OperationalError, match="password"):
                query(url, b"SELECT 1")
        files = [path for path in data.rglob("*") if path.is_file() and path.stat().st_size < 1000]
        found = [path for path in files if password.encode() in path.read_bytes()]
        assert [path.stat().st_mode & 0o777 for path in found] == [0o600]
    with DevPostgres(port=0, data=data, settings=SETTINGS) as server:
        assert conninfo_to_dict(server.tcp_url)["password"] == password
    found[0].unlink()
    with pytest.raises(DevPostgresError, match="has no password"):
        DevPostgres(port=0, data=data).start()


def test_the_server_gets_no_variable_with_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_DEVELOPER", "hunter2")
    with DevPostgres(settings=SETTINGS) as server, psycopg.connect(server.url) as connection:
        connection.execute("create temporary table variable (line text)")
        connection.execute("copy variable from program 'env'")
        lines = [row[0] for row in connection.execute("select line from variable")]
    names = {line.partition("=")[0] for line in lines}
    assert "PATH" in names
    assert "SECRET_OF_THE_DEVELOPER" not in names


def test_start_and_stop_can_be_repeated_and_close_leaves_nothing() -> None:
    server = DevPostgres(settings=SETTINGS)
    server.start()
    server.start()
    folder = server.data.parent
    server.stop()
    server.stop()
    server.close()
    server.close()
    assert not folder.exists()


def test_a_killed_process_leaves_no_server_behind(open_folder: Path) -> None:
    data = open_folder / "data"
    command = [sys.executable, "-m", "freehold.lab.devpostgres", "--data", str(data)]
    # The killed launcher cannot remove its temporary folder, so it goes into the test's folder.
    environment = os.environ | {"TMPDIR": str(open_folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline().startswith(b"postgresql://")
        server = int((data / "postmaster.pid").read_text().splitlines()[0])
        assert is_alive(server)
        launcher.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_alive(server), "the server was gone")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_a_url_and_stops_on_a_signal(how: signal.Signals) -> None:
    command = [sys.executable, "-m", "freehold.lab.devpostgres", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        url = launcher.stdout.readline().decode().strip()
        assert query(url, b"SELECT 1") == 1
        launcher.send_signal(how)
        assert launcher.wait(30) == 0
    with pytest.raises(psycopg.OperationalError):
        query(url, b"SELECT 1")


@pytest.mark.usefixtures("no_server_anywhere")
def test_missing_binaries_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DevPostgresError, match=r"freehold\[dev-postgres\]"):
        DevPostgres().start()
    with pytest.raises(DevPostgresError, match=str(tmp_path)):
        DevPostgres(binaries=tmp_path).start()


def test_a_server_that_cannot_start_shows_its_log() -> None:
    with (
        pytest.raises(DevPostgresError, match="no_such_setting"),
        DevPostgres(settings={"no_such_setting": "on"}),
    ):
        pass


def test_a_directory_with_other_files_is_refused(open_folder: Path) -> None:
    (open_folder / "other.txt").write_text("content")
    with (
        pytest.raises(DevPostgresError, match="contains other files"),
        DevPostgres(data=open_folder),
    ):
        pass


def test_a_relative_data_directory_is_resolved(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's processes run in `/`, where a relative path would mean another folder."""
    monkeypatch.chdir(open_folder)
    with DevPostgres(data=Path("pgdata"), settings=SETTINGS) as server:
        assert server.data == open_folder.resolve() / "pgdata"
        assert query(server.url, b"SELECT 1") == 1
    assert (open_folder / "pgdata" / "PG_VERSION").exists()


def test_a_relative_folder_of_binaries_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = devpostgres.find_binaries()
    monkeypatch.chdir(folder.parent)
    with DevPostgres(binaries=Path(folder.name), settings=SETTINGS) as server:
        assert query(server.url, b"SELECT 1") == 1

"""The command line among other programs: help, pipes, interrupts, other encodings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from freehold import __version__
from freehold.cli import main
from tests.cli.shell import Shell, environment, refusal, run, spawn


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command there is, by its words."""
    found = [path] if not isinstance(command, click.Group) or path == ("queues",) else []
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            found += leaves(inner, (*path, name))
    return found


LEAVES = leaves(main)
#: The demo brings its own app; a worker and a service have nothing to list, `top` is a picture;
#: the settings need no store.
LACKS = {
    "version": {"--url", "--schema", "--app"},
    "demo": {"--json", "--url", "--schema", "--app"},
    "worker": {"--json"},
    "up": {"--json"},
    "top": {"--json"},
    "simulate": {"--url", "--schema", "--app"},
    "config": {"--url", "--schema", "--app"},
}


def test_the_version() -> None:
    assert run("--version").out == f"freehold, version {__version__}\n"
    assert run("version").out == f"freehold {__version__}\n"
    assert run("version", "--json").json == {"version": __version__}


def test_help_tells_the_exit_codes() -> None:
    out = run("--help").out
    for word in ("Exit codes:", "refused", "bad input", "the store is unavailable", "enqueue"):
        assert word in out


def test_a_worker_reads_only_what_a_worker_needs(tmp_path: Path) -> None:
    """It is started often; the tools that draw, the demo and the simulation take their time."""
    said = spawn("worker", "--help", cwd=tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"})
    read = {line.rpartition("|")[2].strip() for line in said.err.splitlines()}
    assert {"freehold.cli.logs", "freehold.worker.worker"} <= read
    assert not read & {"rich", "freehold.lab.demo", "freehold.manager", "freehold.lab.simulation"}


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_help_a_store_and_json(path: tuple[str, ...]) -> None:
    said = run(*path, "--help")
    assert said.code == 0
    for option in {"--json", "--url", "--schema", "--app"} - LACKS.get(path[0], set()):
        assert option in said.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("dance",), "No such command 'dance'"),
        (("--dance",), "No such option"),
        (("job", "dance"), "No such command 'dance'"),
        (("jobs", "--dance"), "See `freehold jobs --help`."),
    ],
)
def test_bad_usage_is_one_line(args: tuple[str, ...], words: str) -> None:
    assert words in refusal(run(*args), 2)


def test_a_reader_that_goes_away_is_no_error(sqlite_shell: Shell) -> None:
    for _ in range(50):
        sqlite_shell.store.add()
    for command in (("jobs",), ("jobs", "--json"), ("job", "show", "1")):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "freehold", *command],
            env=environment({"FREEHOLD_URL": sqlite_shell.url}),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b""), command


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(
        "import signal\nprint('ready', flush=True)\nsignal.pause()\n", encoding="utf-8"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "freehold", "jobs", "--app", "waits:app"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background of a shell has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.strip() == "freehold: interrupted"


def test_a_terminal_of_another_encoding(sqlite_shell: Shell, tmp_path: Path) -> None:
    sqlite_shell.store.add(target="schlüssel-✓", args=b'{"a":1}')
    env = {"PYTHONIOENCODING": "ascii", "FREEHOLD_URL": sqlite_shell.url}
    for command in (("doctor",), ("jobs",), ("job", "show", "1"), ("job", "explain", "1")):
        assert spawn(*command, cwd=tmp_path, env=env).code == 0, command
    found = spawn("jobs", "--json", cwd=tmp_path, env=env).json["jobs"]
    assert found[0]["target"] == "schlüssel-✓"


def test_the_installed_command_is_the_same(sqlite_shell: Shell) -> None:
    installed = Path(sys.executable).with_name("freehold")
    done = subprocess.run(
        [installed, "jobs", "--url", sqlite_shell.url],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "no jobs\n", "")

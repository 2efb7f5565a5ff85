"""The command line and its surroundings: help, pipes, interrupts, other encodings, logs."""

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
    """The path of every command."""
    found = [path] if not isinstance(command, click.Group) or path == ("queues",) else []
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            found += leaves(inner, (*path, name))
    return found


LEAVES = leaves(main)
#: Options that a command has no use for: the demo has its own app, a worker and a service list
#: nothing, `top` draws a screen, and the settings need no store.
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


def test_help_lists_the_exit_codes() -> None:
    out = run("--help").out
    for text in ("Exit codes:", "refused", "bad input", "the store is unavailable", "enqueue"):
        assert text in out


def test_a_worker_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Workers are started often, and the imports of other commands take time."""
    result = spawn("worker", "--help", cwd=tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"})
    read = {line.rpartition("|")[2].strip() for line in result.err.splitlines()}
    assert {"freehold.cli.logs", "freehold.worker.worker"} <= read
    assert not read & {"rich", "freehold.lab", "freehold.manager.manager"}


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_help_a_store_and_json(path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.code == 0
    for option in {"--json", "--url", "--schema", "--app"} - LACKS.get(path[0], set()):
        assert option in result.out


def commands(group: click.Group) -> list[click.Command]:
    inner = [commands(each) for each in group.commands.values() if isinstance(each, click.Group)]
    return [*group.commands.values(), *(each for found in inner for each in found)]


@pytest.mark.parametrize("command", commands(main), ids=lambda command: command.name)
def test_the_first_sentence_of_a_help_is_short_enough_for_a_list(command: click.Command) -> None:
    first = " ".join((command.help or "").partition("\n\n")[0].split()).partition(". ")[0]
    assert 0 < len(first) <= 50, first


@pytest.mark.parametrize("path", LEAVES)
def test_help_fits_80_columns_and_ends_with_the_store(path: tuple[str, ...]) -> None:
    lines = run(*path, "--help", env={"COLUMNS": "80"}).out.splitlines()
    assert max(map(len, lines)) <= 80
    if "--url" not in LACKS.get(path[0], set()):
        assert lines[-6:][0] == "Store:"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("dance",), "No such command 'dance'"),
        (("--dance",), "No such option"),
        (("job", "dance"), "No such command 'dance'"),
        (("jobs", "--dance"), "See `freehold jobs --help`."),
    ],
)
def test_bad_usage_is_one_line(args: tuple[str, ...], expected: str) -> None:
    assert expected in refusal(run(*args), 2)


def test_a_closed_pipe_is_no_error(sqlite_shell: Shell) -> None:
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
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.strip() == "freehold: interrupted"


def test_a_terminal_of_another_encoding_gets_escapes(sqlite_shell: Shell, tmp_path: Path) -> None:
    sqlite_shell.store.add(target="schlüssel-✓", args=b'{"a":1}')
    env = {"PYTHONIOENCODING": "ascii", "FREEHOLD_URL": sqlite_shell.url}
    for command in (("jobs",), ("job", "show", "1"), ("job", "explain", "1")):
        assert spawn(*command, cwd=tmp_path, env=env).code == 0, command
    assert spawn("doctor", cwd=tmp_path, env=env).code == 1  # no worker serves the job
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

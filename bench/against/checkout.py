"""The code of a program in a folder of its own, with the interpreter that runs it.

A commit is checked out by `git worktree`. Its environment is made from its own lock file. As this
takes a minute, the environment stays in the user's cache, one for each lock file and version of
Python. It has the dependencies only; the code is found by PYTHONPATH.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet import Command, MeasurementFailed, run

ROOT = Path(__file__).parents[2]
_IGNORED = shutil.ignore_patterns("__pycache__", "results")


@dataclass(frozen=True)
class Checkout:
    """One program. ``harness`` is the folder of the module `bench` that its processes import;
    ``session`` its setting `store.session`, None for the default."""

    name: str
    root: Path
    python: Path
    harness: Path
    commit: str | None
    session: str | None = None

    @property
    def package(self) -> str:
        """The only package in its folder `src`."""
        found = [path.parent.name for path in (self.root / "src").glob("*/__init__.py")]
        if len(found) != 1:
            raise MeasurementFailed(f"{self.root}/src must have one package, and has {found}")
        return found[0]

    def command(self, role: str, url: str, jobs: int, warm_up_jobs: int, file: str) -> Command:
        module = ["-m", "bench.against.program", self.package, role]
        return Command(
            f"{self.name} ({self.package}) {role}",
            [str(self.python), *module, url, str(jobs), str(warm_up_jobs), file],
            env=self.environment(),
            cwd=self.harness,
        )

    def environment(self) -> dict[str, str]:
        """Without the settings of the user: every program has its defaults."""
        prefix = f"{self.package.upper()}_"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(prefix)}
        if self.session is not None:
            kept[f"{prefix}STORE_SESSION"] = self.session
        return {**kept, "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.harness}"}

    def describe(self) -> dict[str, Any]:
        """Raises unless the interpreter really imports the code of this checkout."""
        found = run(self.command("describe", "sqlite://:memory:", 0, 0, "-"))
        if not Path(found["file"]).is_relative_to(self.root.resolve()):
            raise MeasurementFailed(f"{self.name} imports {found['file']}, not {self.root}")
        return {"package": self.package, "commit": self.commit, "versions": found["versions"]}


def copy_harness(folder: Path) -> Path:
    """Copy the module `bench`: edits during a run must not change how it measures."""
    harness = folder / "harness"
    shutil.copytree(ROOT / "bench", harness / "bench", ignore=_IGNORED)
    return harness


def this_tree(name: str, folder: Path, harness: Path) -> Checkout:
    """A copy of this tree: edits during a run must not change what is measured."""
    root = folder / name
    shutil.copytree(ROOT / "src", root / "src", ignore=_IGNORED)
    return Checkout(name, root, Path(sys.executable), harness, commit_of(ROOT))


@contextlib.contextmanager
def other(source: str, python: Path | None, folder: Path, harness: Path) -> Iterator[Checkout]:
    """``source`` is a commit, or the path of a checkout, which is measured where it is."""
    path = Path(source).resolve()
    if (path / "src").is_dir():
        own = path / ".venv" / "bin" / "python"
        chosen = python or (own if own.exists() else Path(sys.executable))
        yield Checkout("other", path, chosen, harness, commit_of(path))
        return
    commit = _git("rev-parse", "--verify", "--quiet", f"{source}^{{commit}}")
    if not commit:
        raise MeasurementFailed(f"--against: {source} is neither a commit nor a checkout")
    root = folder / "other"
    try:
        _git("worktree", "add", "--detach", str(root), commit)
        if not root.is_dir():
            raise MeasurementFailed(f"git worktree add {root} {commit} failed")
        yield Checkout("other", root, python or _python_for(root), harness, commit)
    finally:
        # Twice: an interrupted `worktree add` leaves it locked.
        _git("worktree", "remove", "--force", "--force", str(root))


def label(source: str) -> str:
    """A name for files: that of the folder, or the first digits of the commit."""
    path = Path(source).resolve()
    if (path / "src").is_dir():
        return path.name
    return _git("rev-parse", "--short=8", "--verify", "--quiet", source) or "unknown"


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, with `+` if its code differs; None outside git."""
    commit = _git("rev-parse", "--verify", "--quiet", "HEAD", root=root)
    if not commit:
        return None
    return commit + "+" * bool(_git("status", "--porcelain", "--", "src", root=root))


def _git(*words: str, root: Path = ROOT) -> str:
    """Returns the output, which is empty if git fails. A Ctrl-C in the terminal must not reach it:
    it also cleans up."""
    command = ["git", "-C", str(root), "-c", "core.hooksPath=/dev/null", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, start_new_session=True
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _python_for(root: Path) -> Path:
    """The interpreter of an environment with the packages of the checkout's lock file."""
    lock = root / "requirements" / "dev.lock"
    if not lock.exists():
        raise MeasurementFailed(f"{lock} is missing: name an interpreter by --against-python")
    # Comments name the packages that need a package; they do not change the environment.
    packages = [line for line in lock.read_text().splitlines() if not line.strip().startswith("#")]
    content = "\n".join([sys.version, sys.base_prefix, *packages])
    key = hashlib.sha256(content.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freehold-bench"
    cache.mkdir(parents=True, exist_ok=True)
    environment = cache / key
    with (cache / f"{key}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (environment / "complete").exists():
            _make_environment(environment, lock)
    return environment / "bin" / "python"


def _make_environment(environment: Path, lock: Path) -> None:
    sys.stderr.write(f"making the environment of the other commit in {environment}\n")
    python = environment / "bin" / "python"
    install = ["-m", "pip", "--disable-pip-version-check", "install", "-qq", "--require-hashes"]
    shutil.rmtree(environment, ignore_errors=True)
    try:
        for command in (
            [sys.executable, "-m", "venv", str(environment)],
            [str(python), *install, "-r", str(lock)],
        ):
            run(Command(" ".join(command), command))
        (environment / "complete").touch()
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise

"""Runs the model of the lease protocol, and its mutants, through Spin."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("lease.pml")
#: Longer than any path through the model; a search that is cut off would prove nothing.
_DEPTH = 1_000_000
_INSTALL = "install with `apt-get install spin gcc` (Debian, Ubuntu) or `brew install spin` (macOS)"
_SAFETY = ("-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048")

_TWO_WORKERS = ("JOBS=2", "MAX_ATTEMPTS=1", "NO_OPERATOR")
_RETRIES = ("JOBS=2", "MAX_ATTEMPTS=2", "NO_OPERATOR")
_CANCELS = ("JOBS=3", "WORKERS=1", "MAX_ATTEMPTS=1")
_LATE = ("JOBS=2", "MAX_ATTEMPTS=1", "NO_OPERATOR", "LATECOMER")
_TWO_SWEEPERS = ("JOBS=2", "WORKERS=1", "SWEEPERS=2", "MAX_ATTEMPTS=2", "NO_OPERATOR")

#: Small enough for the short form of the tests.
SMALL = {"two workers": _TWO_WORKERS}
#: Only for `scripts/model` and the long form of the tests: these take minutes and some gigabytes.
LARGE = {
    "an operator cancels": _CANCELS,
    "a job comes late": _LATE,
    "two sweepers": _TWO_SWEEPERS,
    "two workers and retries": _RETRIES,
    "two workers and an operator": ("JOBS=2", "MAX_ATTEMPTS=1"),
    "three jobs, two workers": ("JOBS=3", "MAX_ATTEMPTS=1", "NO_OPERATOR"),
}
#: Mutant -> the smallest configuration in which it violates a property.
MUTANTS = {
    "NO_TOKEN": _RETRIES,
    "NO_EXPIRY_CHECK": _TWO_WORKERS,
    "RENEW_REVIVES": _TWO_WORKERS,
    "RECOVER_BLINDLY": _TWO_SWEEPERS,
    "NO_RECOVERY": _TWO_WORKERS,
    "PROMOTE_IN_SAME_STATEMENT": _TWO_WORKERS,
    "NO_PROMOTION": _TWO_WORKERS,
    "PROMOTE_ONCE": _CANCELS,
    "DEMOTE_WITHOUT_GUARD": _TWO_WORKERS,
    "RETRY_LETS_GO": _RETRIES,
    "NO_HOLDER_INDEX": _LATE,
}

#: The mutants of the short form of the tests; each needs a compilation.
SMALL_MUTANTS = ("NO_TOKEN", "RECOVER_BLINDLY", "PROMOTE_IN_SAME_STATEMENT")


@dataclass(frozen=True)
class SearchResult:
    """The result of a search through all states."""

    states: int
    #: The first violated property, in Spin's words; None if all hold.
    violated: str | None
    is_complete: bool


def missing_tools() -> str | None:
    """The tools of the model that are not installed here, and how to install them."""
    tools = {"Spin": shutil.which("spin"), "a C compiler": compiler()}
    missing = [name for name, path in tools.items() if path is None]
    return f"{' and '.join(missing)} not found; {_INSTALL}" if missing else None


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def search(*defines: str, is_large: bool = False) -> SearchResult:
    """Searches every reachable state for a violation. Optimizing takes five seconds, which only a
    large search makes up for."""
    with tempfile.TemporaryDirectory(prefix="freehold-model-") as folder:
        _run(folder, "spin", *(f"-D{name}" for name in defines), "-a", str(MODEL))
        _run(
            folder, compiler() or "cc", "-O2" if is_large else "-O0", *_SAFETY, "-o", "pan", "pan.c"
        )
        output = _run(folder, "./pan", f"-m{_DEPTH}")
    states = re.search(r"^ *(\d+) states, stored", output, re.MULTILINE)
    errors = re.search(r"errors: (\d+)", output)
    assert states is not None, output
    assert errors is not None, output
    violated = re.search(r"^pan:1: (.+?) \(at depth", output, re.MULTILINE)
    is_complete = "max search depth too small" not in output and "out of memory" not in output
    assert (violated is None) == (errors[1] == "0"), output
    return SearchResult(int(states[1]), None if violated is None else violated[1], is_complete)


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout

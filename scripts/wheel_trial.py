"""Installs the wheel of dist/ into clean environments and tries it there, for `scripts/release`.

Every Python gets an environment with the wheel and its extras `postgres` and `http`, in which the
demo and the examples of the README run. With the newest of them each extra is also installed alone,
and the types are checked.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from freehold.lab.devpostgres import DevPostgres
from scripts.site.matrix import write_row
from scripts.site.paths import ROOT
from tests.docs.pages import blocks, commands, write_files

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_TYPED = """\
from freehold import Freehold, JobHandle

app = Freehold()


@app.task
def double(n: int) -> int:
    return 2 * n


job: JobHandle[int] = double.enqueue(4)
reveal_type(job.result())
"""


def main(wanted: list[str]) -> int:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    _check_contents(wheel)
    found = {version: python for version in wanted or VERSIONS if (python := _find(version))}
    for version in (v for v in wanted or VERSIONS if v not in found):
        print(f"release: NOT TRIED: Python {version} is not installed", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        for version, python in found.items():
            _try(version, python, wheel, Path(folder))
        newest = list(found)[-1]
        _try_extras(found[newest], wheel, Path(folder))
        _check_types(Path(folder) / newest)
        _write_sbom(Path(folder) / newest, wheel)
    print(f"release: tried with Python {', '.join(found)}; see dist/")
    return 0 if len(found) >= min(3, len(wanted or VERSIONS)) else 1


def _check_contents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("freehold/py.typed", "freehold/config/default.toml"):
        assert needed in names, f"{wheel.name} has no {needed}"
    other = {name.split("/")[0] for name in names if not name.startswith("freehold")}
    assert not other, f"{wheel.name} installs {other}"


def _find(version: str) -> str | None:
    """In $PYTHON_3_12 and so on, on the PATH, among those of pyenv and of uv."""
    home = Path.home()
    named = os.environ.get(f"PYTHON_{version.replace('.', '_')}")
    candidates = [
        *([named] if named else []),
        f"python{version}",
        *map(str, (home / ".pyenv" / "versions").glob(f"{version}.*/bin/python")),
        *map(str, (home / ".local/share/uv/python").glob(f"cpython-{version}*/bin/python")),
    ]
    return next((each for each in candidates if _works(each, version)), None)


def _works(python: str, version: str) -> bool:
    check = f"import ensurepip, sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    try:
        return (
            subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def _try(version: str, python: str, wheel: Path, folder: Path) -> None:
    venv = folder / version
    _run(python, "-m", "venv", str(venv))
    _install(venv, f"{wheel}[postgres,http]")
    printed = _run(str(venv / "bin" / "freehold"), "--version")
    assert printed.strip() == f"freehold, version {_version()}", printed
    _run(str(venv / "bin" / "freehold"), "demo", "--jobs", "60")
    with DevPostgres() as server:
        examples = sum(1 for _ in _examples(venv, folder / f"readme-{version}", server.url))
    exact = _run(
        str(venv / "bin" / "python"), "-c", "import platform; print(platform.python_version())"
    )
    tests = "scripts/release"
    write_row("Python", version, exact.strip(), tests, f"demo, {examples} examples of the README")
    print(f"release: Python {exact.strip()}: installed, demo, {examples} examples of the README")


def _examples(venv: Path, folder: Path, url: str) -> Iterator[str]:
    """Every block of Python and every command of the README, in a new folder."""
    folder.mkdir()
    write_files("README.md", folder)
    more = {"DATABASE_URL": url, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks("python", ROOT / "README.md"):
        own = folder / str(block.number)
        own.mkdir()
        write_files("README.md", own)
        (own / "example.py").write_text(block.text, encoding="utf-8")
        variables = more if block.needs_postgres else {"PATH": more["PATH"]}
        yield _run(
            str(venv / "bin" / "python"), block.file_name or "example.py", at=own, **variables
        )
    for command in commands("README.md"):
        yield _run("sh", "-c", command.text, at=folder, PATH=more["PATH"])


def _try_extras(python: str, wheel: Path, folder: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in project["optional-dependencies"]:
        venv = folder / f"extra-{extra}"
        _run(python, "-m", "venv", str(venv))
        _install(venv, f"{wheel}[{extra}]")
        _run(str(venv / "bin" / "python"), "-m", "pip", "check")
        _run(str(venv / "bin" / "freehold"), "--version")
        print(f"release: the extra {extra} installs")


def _check_types(venv: Path) -> None:
    """A type checker finds the types of the installed package, not of the source."""
    program = venv / "typed.py"
    program.write_text(_TYPED, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable"]
    printed = _run(*mypy, str(venv / "bin" / "python"), str(program), at=venv)
    assert 'Revealed type is "int"' in printed.replace("builtins.", ""), printed
    print("release: a type checker finds the types")


def _write_sbom(venv: Path, wheel: Path) -> None:
    tool = ROOT / ".venv-release" / "bin" / "cyclonedx-py"
    target = ROOT / "dist" / f"freehold-{_version()}.cdx.json"
    _install(venv, f"{wheel}[all]")
    options = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--of", "JSON"]
    _run(str(tool), "environment", *options, "-o", str(target), str(venv / "bin" / "python"))
    print(
        f"release: {target.relative_to(ROOT)} lists the packages of an installation with all extras"
    )


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _install(venv: Path, what: str) -> None:
    _run(
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-qq",
        what,
    )


def _run(*command: str, at: Path | None = None, **more: str) -> str:
    """What it printed. Without the settings of this shell, and not in the repository, so that the
    wheel is used."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FREEHOLD_", "DATABASE_URL"))}
    where = at or Path(tempfile.gettempdir())
    ended = subprocess.run(
        command, cwd=where, env={**kept, **more}, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"release: {' '.join(command)}\n{ended.stdout}\n{ended.stderr}")
    return ended.stdout


if __name__ == "__main__":
    assert platform.system() == "Linux", "only Linux is supported"
    sys.exit(main(sys.argv[1:]))

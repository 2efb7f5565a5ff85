"""The repository as text and as syntax trees, for the tests that hold its rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "freehold"
#: What the repository consists of, besides the files at its top.
FOLDERS = (
    ".ci",
    ".github",
    "bench",
    "deploy",
    "docs",
    "requirements",
    "scripts",
    "src",
    "tests",
)
STORES = ("postgres", "sqlite")


@dataclass(frozen=True)
class Module:
    """One Python file of the package."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        """Parsed by the first test that reads it: every process of a run collects all tests."""
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def path_in_package(self) -> str:
        """As the rules name it: `store/open.py`."""
        return self.path.relative_to(PACKAGE).as_posix()


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, by name."""
    return tuple(Module(_name(path), path) for path in sorted(PACKAGE.rglob("*.py")))


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(module: Module) -> frozenset[str]:
    """Modules of ours that it names anywhere, also inside functions and for types only."""
    return frozenset(imported_by(module.tree))


@cache
def _known() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def imported_by(tree: ast.AST) -> set[str]:
    known = _known()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found & known


def strings(tree: ast.AST) -> Iterator[str]:
    """Every text in the code, the pieces of f-strings joined; no docstrings."""
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    pieces: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces |= {id(value) for value in node.values}
            yield "".join(_piece(value) for value in node.values)
        elif (
            isinstance(node, ast.Constant) and id(node) not in documents and id(node) not in pieces
        ):
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("utf-8", "replace")


def _piece(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{}"


@cache
def text_files() -> tuple[tuple[str, str], ...]:
    return tuple(_read_text_files())


def _read_text_files() -> Iterator[tuple[str, str]]:
    """(path, text) of every file of this repository that is not generated."""
    # In a second work tree of the repository `.git` is a file of git, with a path of the machine.
    tops = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    inner = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(tops + inner):
        # Databases and their locks are what tests and demos leave, never part of the repository.
        # `.git` is a file in a worktree.
        if "__pycache__" in path.parts or ".db" in path.name or path.name == ".git":
            continue
        if path.suffix == ".png":
            continue
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")

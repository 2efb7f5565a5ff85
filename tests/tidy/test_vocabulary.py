"""One word for one thing, the word of the field. docs/vocabulary.md explains the terms."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import PACKAGE, ROOT, modules, text_files

#: Words of an earlier private language. They must not come back, not even as a part of a name.
BANNED = {
    "adrift",
    "chair",
    "chorus",
    "crier",
    "cry",
    "desk",
    "ear",
    "glance",
    "houses",
    "keeper",
    "keepers",
    "keeping",
    "letters",
    "lodger",
    "notepad",
    "roster",
    "said",
    "scribe",
    "seat",
    "teller",
    "told",
    "town",
    "ward",
    "witness",
}
MODULES_IN_A_FOLDER = 25
#: One module for each command, for each topic of the API, for each rule, or for the verbs of one
#: topic; and the package itself, where an app is put together.
LARGE_FOLDERS = {".", "cli", "http", "lab/simulation", "model", "store/verbs"}

PERSONS = re.compile(
    r"\b(who|whoever|whose|whom|nobody|somebody|anybody|everybody)\b", re.IGNORECASE
)
SPEECH = re.compile(r"\b(told|tell|say|said|says|cry|answered)\b", re.IGNORECASE)
#: Of 1,000 words of prose. Plain technical English has hardly any of either.
PERSONS_LIMIT = 2.0
SPEECH_LIMIT = 1.5

_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OLD_NAME = re.compile("lease" + "hold", re.IGNORECASE)


def test_a_public_class_name_is_defined_once() -> None:
    defined: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(module.path_in_package)
    assert {name: found for name, found in defined.items() if len(found) > 1} == {}


def test_no_identifier_has_a_banned_word() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for folder in ("src", "tests", "bench", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in set(_identifiers(ast.parse(path.read_text("utf-8")))):
                if BANNED & {part.lower() for part in _PART.findall(name)}:
                    found[name].add(path.relative_to(ROOT).as_posix())
    assert dict(found) == {}


def test_no_file_has_a_banned_word_in_its_name() -> None:
    paths = [path for path, _ in text_files() if not path.startswith(("bench/results/", "docs/"))]
    assert [path for path in paths if BANNED & set(re.split(r"[^a-z]+", path.lower()))] == []


def test_module_names_are_unique_within_a_folder_tree() -> None:
    """Two dialects have twins by design; packages of one file each do not count."""
    for folder in sorted(path for path in PACKAGE.iterdir() if path.is_dir()):
        stems = Counter(
            path.stem
            for path in folder.rglob("*.py")
            if path.stem != "__init__" and not {"postgres", "sqlite", "lab"} & set(path.parts)
        )
        assert {stem for stem, count in stems.items() if count > 1} == set(), folder.name


def test_no_folder_has_too_many_modules() -> None:
    counts = Counter(
        Path(module.path_in_package).parent.as_posix()
        for module in modules()
        if not module.path_in_package.endswith("__init__.py")
    )
    large = {folder for folder, count in counts.items() if count > MODULES_IN_A_FOLDER}
    assert large <= LARGE_FOLDERS


def test_prose_is_about_the_program_and_not_about_persons() -> None:
    words = persons = speech = 0
    for text in _prose():
        words += len(re.findall(r"[A-Za-z']+", text))
        persons += len(PERSONS.findall(text))
        speech += len(SPEECH.findall(text))
    assert words > 10_000
    assert 1000 * persons / words <= PERSONS_LIMIT
    assert 1000 * speech / words <= SPEECH_LIMIT


def test_the_old_name_stands_in_the_changelog_and_in_measured_data_only() -> None:
    found = {
        f"{path}:{number}"
        for path, text in text_files()
        if not path.startswith("bench/results/")
        for number, line in enumerate(text.splitlines(), 1)
        if _OLD_NAME.search(line) or _OLD_NAME.search(path)
    }
    assert len(found) == 1
    assert found.pop().startswith("CHANGELOG.md:")


def _identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""  # without a name: **values
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).rpartition(".")[2]


def _prose() -> Iterator[str]:
    """Comments and docstrings of the package, those of its SQL included."""
    for path in sorted(PACKAGE.rglob("*.sql")):
        yield from re.findall(r"--[^\n]*", path.read_text("utf-8"))
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""
        source = io.StringIO(module.path.read_text("utf-8"))
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.string

"""Decoders are made in `decoders.py`, one at a time; the reason stands there."""

from __future__ import annotations

import ast

from tests.tidy.sources import modules

#: Files that pass a type to msgspec, and why they may. Each entry must be needed.
ALLOWED = {
    "decoders.py": "makes the decoders",
    "http/dispatch.py": "a route makes its decoders when it is defined",
    "settings.py": "numbers, texts and lists of texts: no type of ours is analysed",
    "model/policy.py": "a dict of any values: no decoder is made",
}

_READERS = {"Decoder", "convert", "decode"}


def test_only_these_files_pass_types_to_msgspec() -> None:
    found = {module.path_in_package for module in modules() if _gives_types(module.tree)}
    assert found == set(ALLOWED)


def _gives_types(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec"):
            assert not _READERS & {alias.name for alias in node.names}, "import msgspec as a whole"
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec."):
            named = {keyword.arg for keyword in node.keywords}
            does = ast.unparse(node.func).rpartition(".")[2]
            if does in _READERS - {"decode"} or (does == "decode" and "type" in named):
                return True
    return False

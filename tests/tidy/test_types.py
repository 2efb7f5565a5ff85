"""Types are learned in `typed`, one at a time: see there what happens otherwise."""

from __future__ import annotations

import ast

from tests.tidy.sources import modules

#: Where msgspec is given a type, and why it may be. Nothing may be listed that is not there.
DOORS = {
    "typed.py": "which is the door",
    "http/dispatch.py": "a route has learned them when it was made",
    "model/policy.py": "a dict of anything: nothing to learn",
}

_READERS = {"Decoder", "convert", "decode"}


def test_msgspec_is_given_types_behind_these_doors_only() -> None:
    found = {module.place for module in modules() if _gives_types(module.tree)}
    assert found == set(DOORS)


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

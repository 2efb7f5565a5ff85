"""A file is one idea and a function one thought: both fit into a head."""

from __future__ import annotations

import ast

from tests.tidy.sources import modules

FILE_LINES = 450
FUNCTION_LINES = 60


def test_no_file_is_too_long() -> None:
    lines = {
        module.path_in_package: len(module.path.read_text("utf-8").splitlines())
        for module in modules()
    }
    assert {place: count for place, count in lines.items() if count > FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{module.path_in_package}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    assert [
        module.path_in_package for module in modules() if not ast.get_docstring(module.tree)
    ] == []

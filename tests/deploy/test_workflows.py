"""The workflow files of the usual hosting, as far as they can be checked without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
_PINNED = re.compile(r"- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def _workflows() -> list[Path]:
    return sorted((GITHUB / "workflows").glob("*.yml"))


def _steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", _workflows(), ids=lambda path: path.name)
def test_actions_are_pinned_by_hash_and_scripts_exist(path: Path) -> None:
    lines = [line.strip() for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not _PINNED.fullmatch(line)] == []
    named = re.findall(r"scripts/\w+", " ".join(step.get("run", "") for step in _steps(path)))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("path", _workflows(), ids=lambda path: path.name)
def test_a_job_has_the_rights_it_needs_and_a_time_limit(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        rights = {"id-token": "write"} if name == "publish" else {"contents": "read"}
        assert job["permissions"] == rights
        assert job["timeout-minutes"] <= 60


def test_the_matrix_has_the_supported_versions() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text("utf-8"))["jobs"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert jobs["suite"]["strategy"]["matrix"]["python"] == versions
    servers = (ROOT / "scripts" / "postgreses").read_text("utf-8")
    assert f"set -- {' '.join(jobs['postgres']['strategy']['matrix']['postgres'])}" in servers


def test_the_templates_of_issues_can_be_read() -> None:
    for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml"):
        template = yaml.safe_load(path.read_text("utf-8"))
        assert path.name == "config.yml" or all(part["attributes"] for part in template["body"])

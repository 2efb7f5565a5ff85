"""The files in deploy/, parsed as Docker, Kubernetes and systemd parse them."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

DEPLOY = Path(__file__).parents[2] / "deploy"
ROOT = DEPLOY.parent


class CommandLine(NamedTuple):
    """The arguments of `freehold`, and the file that they are from."""

    where: str
    arguments: tuple[str, ...]


@cache
def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def manifests() -> list[dict[str, Any]]:
    paths = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [each for path in paths for each in documents(f"kubernetes/{path.name}")]


def pods() -> list[tuple[str, dict[str, Any]]]:
    """The pod of each Deployment and Job."""
    return [
        (each["metadata"]["name"], each["spec"]["template"]["spec"])
        for each in manifests()
        if each["kind"] in ("Deployment", "Job")
    ]


def compose() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = documents("compose.yaml")[0]["services"]
    return services


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "systemd" / name).read_text(encoding="utf-8"))
    return parser


def units() -> list[str]:
    return sorted(path.name for path in (DEPLOY / "systemd").glob("*.service"))


def dockerfile() -> dict[str, list[str]]:
    """Each instruction with its arguments."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in filter(None, lines.splitlines()):
        instruction, _, rest = line.partition(" ")
        found.setdefault(instruction, []).append(rest)
    return found


def command_lines() -> Iterator[CommandLine]:
    yield CommandLine("Dockerfile", tuple(json.loads(dockerfile()["CMD"][-1])))
    for name, service in compose().items():
        if "build" in service:
            yield CommandLine(f"compose.yaml {name}", tuple(service["command"]))
    for name, pod in pods():
        for container in pod["containers"]:
            yield CommandLine(f"kubernetes {name}", tuple(container["args"]))
    for name in units():
        program, *arguments = shlex.split(unit(name)["Service"]["ExecStart"].replace("%i", "mail"))
        assert Path(program).name == "freehold"
        yield CommandLine(f"systemd {name}", tuple(arguments))

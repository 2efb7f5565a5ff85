"""Stands in for curl where there is none: as much of it as the documentation's commands ask for.

curl [-s] [-H 'Name: value'] [-d DATA] [-o FILE] [-w FORMAT] URL
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx


def curl_in(folder: Path) -> dict[str, str]:
    """What a shell's environment needs, so that it finds one."""
    if shutil.which("curl") is not None:
        return {}
    return stand_in(folder)


def stand_in(folder: Path) -> dict[str, str]:
    command = folder / "bin" / "curl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} "$@"\n')
    command.chmod(0o755)
    paths = (command.parent, Path(sys.executable).parent, os.environ["PATH"])
    return {"PATH": os.pathsep.join(map(str, paths))}


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser("curl")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("-o", type=Path)
    parser.add_argument("-w", default="")
    parser.add_argument("url")
    given = parser.parse_args(words)
    answer = httpx.request(
        "GET" if given.d is None else "POST",
        given.url,
        content=given.d,
        headers=dict(header.split(": ", 1) for header in given.H),
        timeout=120,
    )
    if given.o is not None:
        given.o.write_bytes(answer.content)
    else:
        sys.stdout.buffer.write(answer.content)
    sys.stdout.write(given.w.replace("%{http_code}", str(answer.status_code)))


if __name__ == "__main__":
    main(sys.argv[1:])

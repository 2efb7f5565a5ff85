"""Replaces curl where it is not installed, with the options that the documentation uses.

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
    """The variables with which a shell finds a curl."""
    if shutil.which("curl") is not None:
        return {}
    return replacement_in(folder)


def replacement_in(folder: Path) -> dict[str, str]:
    command = folder / "bin" / "curl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} "$@"\n')
    command.chmod(0o755)
    paths = (command.parent, Path(sys.executable).parent, os.environ["PATH"])
    return {"PATH": os.pathsep.join(map(str, paths))}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser("curl")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("-o", type=Path)
    parser.add_argument("-w", default="")
    parser.add_argument("url")
    options = parser.parse_args(arguments)
    response = httpx.request(
        "GET" if options.d is None else "POST",
        options.url,
        content=options.d,
        headers=dict(header.split(": ", 1) for header in options.H),
        timeout=120,
    )
    if options.o is not None:
        options.o.write_bytes(response.content)
    else:
        sys.stdout.buffer.write(response.content)
    sys.stdout.write(options.w.replace("%{http_code}", str(response.status_code)))


if __name__ == "__main__":
    main(sys.argv[1:])

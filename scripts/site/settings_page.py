"""Every setting with its default, its type, its variable and its meaning."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, get_args

from freehold.settings import SETTING_TYPES
from scripts.site.markdown import code, page, table
from scripts.site.paths import ROOT

DEFAULTS = ROOT / "src" / "freehold" / "config" / "default.toml"
INTRO = """Flags win over variables of the environment, those over the file `freehold.toml` in the current folder (or
`[tool.freehold]` in `pyproject.toml`), and that over the defaults. `freehold config` shows every value and where it
comes from. An unknown setting is refused with the most similar name. The variable of `workers.max_count` is
`FREEHOLD_WORKERS_MAX_COUNT`, and so on; lists are separated by commas. `FREEHOLD_URL` and `FREEHOLD_SCHEMA` are short
names; `DATABASE_URL` is used if nothing else names the store."""
OTHERS = """## Variables that are not settings

| variable | meaning |
| --- | --- |
| `FREEHOLD_TENANT` | the tenant of a command, as `--tenant` |
| `FREEHOLD_SHARD_EAST` | the URL of the shard `east`; see [tenants](../tenants.md#shards) |
| `FREEHOLD_DEBUG=1` | a command that fails prints its traceback |
| `FREEHOLD_POSTGRES_BIN` | the folder with the programs of PostgreSQL, for `freehold demo --postgres` and the tests |

"""


def settings_page() -> str:
    text = DEFAULTS.read_text("utf-8")
    defaults, notes = tomllib.loads(text), _notes(text)
    sections: dict[str, list[list[str]]] = {}
    for name, kind in SETTING_TYPES.items():
        section, _, key = name.rpartition(".")
        default = defaults[section][key] if section else defaults[key]
        row = [f"`{key}`", f"`{json.dumps(default)}`", _type(kind), notes[name]]
        sections.setdefault(section, []).append(row)
    heads = ["setting", "default", "value", "meaning"]
    parts = [
        f"## {f'[{section}]' if section else 'At the top'}\n\n" + table(heads, rows)
        for section, rows in sections.items()
    ]
    return page("Configuration", INTRO, *parts, OTHERS, _tables_by_name(text))


def _type(kind: Any) -> str:
    return next(str(each.description) for each in get_args(kind) if hasattr(each, "description"))


def _notes(text: str) -> dict[str, str]:
    """The comment of each setting, from its own line and the lines of comments below it."""
    found: dict[str, str] = {}
    section = last = ""
    for line in text.splitlines():
        if head := re.match(r"\[(\w+)\]", line):
            section, last = f"{head[1]}.", ""
        elif given := re.match(r"(\w+) = .*?(?:\s+# (.*))?$", line):
            last = section + given[1]
            found[last] = given[2] or ""
        elif (more := re.match(r"\s{8,}# (.*)", line)) and last:
            found[last] += f" {more[1]}"
        else:
            last = ""
    return found


def _tables_by_name(text: str) -> str:
    """What is a comment in the shipped file: weights, limits, shards, tenants and kinds."""
    rest = text[text.index("\n# The weight of a queue") :]
    return "## Queues, limits, shards and tenants\n\n" + code(rest.strip(), "toml")

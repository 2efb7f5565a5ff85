"""Settings in layers: flags, then the environment, then a file, then the shipped defaults.

Each value records its origin. An unknown or invalid setting is refused with its position in the
file and the most similar name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from freehold.errors import BadSettings
from freehold.model.limit import ALL_QUEUES, Limit, QueueRule, limit_of, queue_rule_of
from freehold.model.names import check_key, check_name, check_schema
from freehold.model.scaling import WorkerCount, worker_count_of
from freehold.model.simulated_kind import SimulatedKind, kind_of
from freehold.model.tenant import HOME_SHARD, check_shard, check_tenant

FILE_NAME = "freehold.toml"
ENVIRONMENT_PREFIX = "FREEHOLD_"
SHARD_PREFIX = "FREEHOLD_SHARD_"
DEFAULT_ORIGIN = "config/default.toml"
#: The kinds of sessions with PostgreSQL.
_SESSIONS = ("pipelined", "plain")
#: Short names, besides FREEHOLD_<SECTION>_<KEY>.
_SHORT = {"FREEHOLD_URL": "store.url", "FREEHOLD_SCHEMA": "store.schema"}
#: Usually set by the project that uses Freehold, so every setting of our own wins over it.
_FALLBACK_URL = "DATABASE_URL"
#: Variables of the command line, which are not settings.
_COMMAND_VARIABLES = frozenset(f"FREEHOLD_{name}" for name in ("TENANT", "DEBUG", "POSTGRES_BIN"))
#: The similarity (0 to 1) from which an unknown variable counts as a mistyped setting.
_SIMILARITY = 0.65
#: Sections whose keys are chosen by the user.
_NAMED_SECTIONS = frozenset({"kinds", "shards", "queues", "limits", "tenants"})


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting and its origin."""

    value: Any
    origin: str


@dataclass(slots=True)
class Settings:
    """All settings, by dotted name."""

    values: dict[str, SettingValue] = field(default_factory=dict)
    kinds: dict[str, SimulatedKind] = field(default_factory=dict)
    #: Weights and limits by queue, and limits by limit key; `apply_settings` writes them.
    queues: dict[str, QueueRule] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    #: Where these come from, as ``queues.NAME`` and ``limits.KEY``; and ``tenants.NAME``.
    origins: dict[str, str] = field(default_factory=dict)
    #: Databases for tenants besides HOME_SHARD: URLs, which can contain passwords.
    shards: dict[str, SettingValue] = field(default_factory=dict)
    #: Tenants with worker processes of their own, for `freehold up --tenants`.
    tenants: dict[str, WorkerCount] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The effective settings. ``flags`` maps dotted names to values; None means: not given."""
    settings = Settings()
    shipped = tomllib.loads(_default_text())
    known = _flat(shipped)
    _add(settings, known, shipped, DEFAULT_ORIGIN)
    variables = os.environ if environment is None else environment
    if variables.get(_FALLBACK_URL):
        settings.values["store.url"] = SettingValue(variables[_FALLBACK_URL], _FALLBACK_URL)
    for origin, content, text in _file(folder or Path.cwd()):
        _add(settings, known, content, origin, text)
    for name, value, origin in _from_environment(known, variables):
        settings.values[name] = SettingValue(value, origin)
    for variable, url in variables.items():
        if variable.startswith(SHARD_PREFIX):
            name = variable.removeprefix(SHARD_PREFIX).lower()
            _add_shard(settings, name, url, variable)
    for name, value in (flags or {}).items():
        if value is not None:
            settings.values[name] = SettingValue(
                _checked(name, value, known[name], "a flag"), "flag"
            )
    _check(settings)
    return settings


def _default_text() -> str:
    return files("freehold").joinpath("config", "default.toml").read_text(encoding="utf-8")


def _file(folder: Path) -> list[tuple[str, dict[str, Any], str]]:
    """freehold.toml, else [tool.freehold] of pyproject.toml, in this folder."""
    own, shared = folder / FILE_NAME, folder / "pyproject.toml"
    for path, part in ((own, False), (shared, True)):
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
        except OSError as error:
            raise BadSettings(f"{path.name} cannot be read: {error.strerror}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadSettings(f"{path.name} is not TOML: {error}") from None
        if part:
            content = _table(_table(content, "tool", path.name), "freehold", path.name)
        if content:
            return [(path.name, content, text)]
    return []


def _add(
    settings: Settings, known: dict[str, Any], content: dict[str, Any], origin: str, text: str = ""
) -> None:
    named = {
        section: _table(content, section, _position(origin, text, section))
        for section in _NAMED_SECTIONS
    }
    for name, fields in named["kinds"].items():
        check_name("kind", name)
        settings.kinds[name] = kind_of(name, fields, _position(origin, text, name))
    for name, fields in named["queues"].items():
        _check_queue(name)
        where = settings.origins[f"queues.{name}"] = _position(origin, text, name)
        settings.queues[name] = queue_rule_of(fields, where)
    for name, fields in named["limits"].items():
        check_key("limit key", name)
        where = settings.origins[f"limits.{name}"] = _position(origin, text, name)
        settings.limits[name] = limit_of(fields, where)
    for name, fields in named["tenants"].items():
        check_tenant(name)
        where = settings.origins[f"tenants.{name}"] = _position(origin, text, name)
        settings.tenants[name] = worker_count_of(fields, where)
    for name, url in named["shards"].items():
        _add_shard(settings, name, url, _position(origin, text, name))
    rest = {key: value for key, value in content.items() if key not in _NAMED_SECTIONS}
    for name, value in _flat(rest).items():
        key = name.rpartition(".")[2]
        where = _position(origin, text, key)
        if name not in known:
            raise BadSettings(f"{where}: there is no setting {name}; {_nearest(name, known)}")
        settings.values[name] = SettingValue(_checked(name, value, known[name], where), where)


def _table(content: Mapping[str, Any], section: str, where: str) -> dict[str, Any]:
    found = content.get(section, {})
    if not isinstance(found, dict):
        raise BadSettings(f"{where}: {section}: give a table, which begins with [{section}]")
    return found


def _check_queue(name: str) -> None:
    if name != ALL_QUEUES:
        check_name("queue", name)


def _add_shard(settings: Settings, name: str, url: object, where: str) -> None:
    """No message contains the URL: it can contain a password."""
    check_shard(name)
    if name == HOME_SHARD:
        raise BadSettings(f"{where}: the shard {HOME_SHARD!r} is the store itself: set store.url")
    if not isinstance(url, str) or not url:
        raise BadSettings(f"{where}: shards.{name}: give the URL of a database, or a file")
    settings.shards[name] = SettingValue(url, where)


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for section, fields in content.items():
        if section in _NAMED_SECTIONS:
            continue
        if isinstance(fields, dict):
            flat.update((f"{section}.{key}", value) for key, value in fields.items())
        else:
            flat[section] = fields
    return flat


def _from_environment(
    known: Mapping[str, Any], environment: Mapping[str, str]
) -> list[tuple[str, Any, str]]:
    found = []
    names = {_variable_of(name): name for name in known}
    names |= _SHORT
    for variable, name in names.items():
        text = environment.get(variable)
        if text:
            value = _parsed(variable, text, known[name])
            found.append((name, _checked(name, value, known[name], variable), variable))
    return found


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that are probably mistyped, each with the setting that was probably meant.

    They are reported, not refused, because programs share an environment. A variable that resembles
    no setting belongs to another program: Kubernetes sets FREEHOLD_SERVICE_HOST for a service of
    that name.
    """
    variables = os.environ if environment is None else environment
    settings = _flat(tomllib.loads(_default_text()))
    known = {_variable_of(name) for name in settings} | {*_SHORT, *_COMMAND_VARIABLES}
    # Compared without the prefix, which would make any two names similar.
    suffixes = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in known)
    found = {}
    for variable in sorted(set(variables) - known):
        if variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(SHARD_PREFIX):
            suffix = variable.removeprefix(ENVIRONMENT_PREFIX)
            for close in get_close_matches(suffix, suffixes, n=1, cutoff=_SIMILARITY):
                found[variable] = ENVIRONMENT_PREFIX + close
    return found


def _variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def _parsed(variable: str, text: str, example: Any) -> Any:
    """Text from the environment, converted to the type of the default."""
    if isinstance(example, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(example, str):
        return text
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise BadSettings(f"{variable}={text!r}: give a number") from None


def _checked(name: str, value: Any, example: Any, where: str) -> Any:
    """Checks that the value has the type of the default and is in range."""
    if isinstance(example, list):
        if (name, value) == ("http.tokens", "local"):
            return [value]
        given = isinstance(value, list | tuple) and (value or not example)
        if given and all(isinstance(v, str) for v in value):
            return list(value)
        # A secret that was written here by mistake must not appear in a log.
        shown = "" if name == "http.tokens" else f" = {value!r}"
        raise BadSettings(f"{where}: {name}{shown}: give a list of names")
    if isinstance(example, str):
        if isinstance(value, str) and (value or not example):
            return value
        raise BadSettings(f"{where}: {name} = {value!r}: give a string")
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric or not 0 <= value < 1e9:
        raise BadSettings(f"{where}: {name} = {value!r}: give a number of 0 or more")
    if name.endswith(("_count", "concurrency")) and (value < 1 or value != int(value)):
        raise BadSettings(f"{where}: {name} = {value!r}: give a whole number of at least 1")
    return value


def _check(settings: Settings) -> None:
    """Rules over several settings."""
    check_schema(settings["store.schema"])
    if settings["store.session"] not in _SESSIONS:
        raise BadSettings(
            f"store.session = {settings['store.session']!r}: give {' or '.join(_SESSIONS)}"
        )
    for queue in settings["workers.queues"]:
        _check_queue(queue)
    port = settings["http.port"]
    if port > 65535 or port != int(port):
        raise BadSettings(f"http.port = {port}: give a whole number from 0 to 65535")
    low, high = settings.values["workers.default_count"], settings.values["workers.max_count"]
    if low.value > high.value:
        raise BadSettings(
            f"workers.default_count = {low.value} ({low.origin}) is more than "
            f"workers.max_count = {high.value} ({high.origin})"
        )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"


def _position(origin: str, text: str, key: str) -> str:
    """file:line of a key; only the file if the line is not found."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*(\[.*\b)?{re.escape(key)}\b", line):
            return f"{origin}:{number}"
    return origin


def resolve_url(given: str | None) -> str:
    """The URL of an app: its argument, else the setting."""
    return str(given if given is not None else load()["store.url"])


def is_pipelined() -> bool:
    """Whether sessions with PostgreSQL use our own pipeline."""
    return bool(load()["store.session"] == "pipelined")


def resolve_schema(given: str | None) -> str:
    return str(given if given is not None else load()["store.schema"])

"""Settings in layers: flags, then the environment, then a file, then the shipped defaults.

Each value remembers where it came from. What is unknown or makes no sense is refused with
the place it stands in and the nearest right name.
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
from freehold.model.simulated_kind import SimulatedKind, kind_of
from freehold.model.tenant import HOME_SHARD, check_shard

FILE_NAME = "freehold.toml"
ENVIRONMENT_PREFIX = "FREEHOLD_"
SHARD_PREFIX = "FREEHOLD_PLACE_"
DEFAULT_ORIGIN = "config/default.toml"
#: Short names that people expect, besides FREEHOLD_<SECTION>_<KEY>.
_SHORT = {"FREEHOLD_URL": "store.url", "FREEHOLD_SCHEMA": "store.schema"}
#: Of the project around us, as a rule: whoever has said where the jobs are has said so to us.
_LAST_RESORT = "DATABASE_URL"
#: Read by the commands themselves, and by nobody else.
_OF_THE_COMMANDS = frozenset(
    f"FREEHOLD_{name}" for name in ("APP", "TENANT", "DEBUG", "POSTGRES_BIN")
)
#: From how much in common on (0 to 1) one name is a slip of another.
_ALIKE = 0.65
#: Sections whose keys are names that people give.
_NAMED = frozenset({"kinds", "places", "queues", "limits"})


@dataclass(frozen=True, slots=True)
class Value:
    """A setting and where it came from."""

    value: Any
    origin: str


@dataclass(slots=True)
class Settings:
    """All settings, by dotted name."""

    values: dict[str, Value] = field(default_factory=dict)
    kinds: dict[str, SimulatedKind] = field(default_factory=dict)
    #: What queues weigh and may, and what limit keys may, by name; `rules` tells the store.
    queues: dict[str, QueueRule] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    #: Where tenants can live, besides HOME: URLs, which can hold passwords.
    places: dict[str, Value] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force. ``flags`` maps dotted names to values; None means: not given."""
    settings = Settings()
    shipped = tomllib.loads(_default_text())
    known = _flat(shipped)
    _add(settings, known, shipped, DEFAULT_ORIGIN)
    variables = os.environ if environment is None else environment
    if variables.get(_LAST_RESORT):
        settings.values["store.url"] = Value(variables[_LAST_RESORT], _LAST_RESORT)
    for origin, content, text in _file(folder or Path.cwd()):
        _add(settings, known, content, origin, text)
    for name, value, origin in _from_environment(known, variables):
        settings.values[name] = Value(value, origin)
    for variable, url in variables.items():
        if variable.startswith(SHARD_PREFIX):
            name = variable.removeprefix(SHARD_PREFIX).lower()
            _add_shard(settings, name, url, variable)
    for name, value in (flags or {}).items():
        if value is not None:
            settings.values[name] = Value(_checked(name, value, known[name], "a flag"), "flag")
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
        text = path.read_text(encoding="utf-8")
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadSettings(f"{path.name} is not TOML: {error}") from None
        if part:
            content = content.get("tool", {}).get("freehold", {})
        if content:
            return [(path.name, content, text)]
    return []


def _add(
    settings: Settings, known: dict[str, Any], content: dict[str, Any], origin: str, text: str = ""
) -> None:
    kinds = content.get("kinds", {})
    for name, fields in kinds.items():
        check_name("kind", name)
        settings.kinds[name] = kind_of(name, fields, _place(origin, text, name))
    for name, fields in content.get("queues", {}).items():
        _check_queue(name)
        settings.queues[name] = queue_rule_of(fields, _place(origin, text, name))
    for name, fields in content.get("limits", {}).items():
        check_key("limit key", name)
        settings.limits[name] = limit_of(fields, _place(origin, text, name))
    for name, url in content.get("places", {}).items():
        _add_shard(settings, name, url, _place(origin, text, name))
    rest = {key: value for key, value in content.items() if key not in _NAMED}
    for name, value in _flat(rest).items():
        key = name.rpartition(".")[2]
        where = _place(origin, text, key)
        if name not in known:
            raise BadSettings(f"{where}: there is no setting {name}; {_nearest(name, known)}")
        settings.values[name] = Value(_checked(name, value, known[name], where), where)


def _check_queue(name: str) -> None:
    if name != ALL_QUEUES:
        check_name("queue", name)


def _add_shard(settings: Settings, name: str, url: object, where: str) -> None:
    """The URL is never told: it can hold a password."""
    check_shard(name)
    if name == HOME_SHARD:
        raise BadSettings(f"{where}: the place {HOME_SHARD!r} is where the directory is: store.url")
    if not isinstance(url, str) or not url:
        raise BadSettings(f"{where}: places.{name}: give the URL of a database, or a file")
    settings.places[name] = Value(url, where)


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for section, fields in content.items():
        if section in _NAMED:
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
    """Variables that nobody reads, and the one that each may have been meant to be.

    They are told, not refused: an environment is shared. What is near no name of ours belongs to
    somebody else, such as FREEHOLD_SERVICE_HOST, which Kubernetes sets for a service of that name.
    """
    variables = os.environ if environment is None else environment
    settings = _flat(tomllib.loads(_default_text()))
    known = {_variable_of(name) for name in settings} | {*_SHORT, *_OF_THE_COMMANDS}
    # Compared without what all of them begin with, which would make any two alike.
    ends = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in known)
    found = {}
    for variable in sorted(set(variables) - known):
        if variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(SHARD_PREFIX):
            end = variable.removeprefix(ENVIRONMENT_PREFIX)
            for close in get_close_matches(end, ends, n=1, cutoff=_ALIKE):
                found[variable] = ENVIRONMENT_PREFIX + close
    return found


def _variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def _parsed(variable: str, text: str, example: Any) -> Any:
    """Text from the environment, as the type that the default has."""
    if isinstance(example, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(example, str):
        return text
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise BadSettings(f"{variable}={text!r}: give a number") from None


def _checked(name: str, value: Any, example: Any, where: str) -> Any:
    """The same kind of value as the default, and in range."""
    if isinstance(example, list):
        given = isinstance(value, list | tuple) and (value or not example)
        if given and all(isinstance(v, str) for v in value):
            return list(value)
        # Whoever writes a secret in its place must not find it in a log.
        shown = "" if name == "http.tokens" else f" = {value!r}"
        raise BadSettings(f"{where}: {name}{shown}: give a list of names")
    if isinstance(example, str):
        if isinstance(value, str) and value:
            return value
        raise BadSettings(f"{where}: {name} = {value!r}: give a text")
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric or not 0 <= value < 1e9:
        raise BadSettings(f"{where}: {name} = {value!r}: give a number of 0 or more")
    if name.endswith(("_count", "concurrency")) and (value < 1 or value != int(value)):
        raise BadSettings(f"{where}: {name} = {value!r}: give a whole number of at least 1")
    return value


def _check(settings: Settings) -> None:
    """What must fit together."""
    check_schema(settings["store.schema"])
    for queue in settings["workers.queues"]:
        check_name("queue", queue)
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


def _place(origin: str, text: str, key: str) -> str:
    """file:line of a key, as far as it can be found."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*(\[.*\b)?{re.escape(key)}\b", line):
            return f"{origin}:{number}"
    return origin


def resolve_url(given: str | None) -> str:
    """For an app: an argument, else the environment or a file, else the default."""
    return str(given if given is not None else load()["store.url"])


def resolve_schema(given: str | None) -> str:
    return str(given if given is not None else load()["store.schema"])

"""Settings in layers: flags, then the environment, then a file, then the shipped defaults.

A setting has one name: `workers.max_count` in a file is `settings.workers.max_count` in code and
FREEHOLD_WORKERS_MAX_COUNT in the environment. Each value records its origin. An unknown or invalid
setting is refused with its position in the file and the most similar name.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import msgspec
from msgspec import Meta

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
#: Short names, besides FREEHOLD_<SECTION>_<KEY>.
_SHORT = {"FREEHOLD_URL": "store.url", "FREEHOLD_SCHEMA": "store.schema"}
#: Usually set by the project that uses Freehold, so every setting of our own wins over it.
_FALLBACK_URL = "DATABASE_URL"
#: Variables of the command line, which are not settings.
_COMMAND_VARIABLES = frozenset(f"FREEHOLD_{name}" for name in ("TENANT", "DEBUG", "POSTGRES_BIN"))
#: The similarity (0 to 1) from which an unknown variable counts as a mistyped setting.
_SIMILARITY = 0.65

# The description of a type completes the error message: "give ...".
Text = Annotated[str, Meta(min_length=1, description="a string")]
OptionalText = Annotated[str, Meta(description="a string")]
Names = Annotated[tuple[str, ...], Meta(min_length=1, description="a list of names")]
Tokens = Annotated[tuple[str, ...], Meta(description="a list of names")]
Count = Annotated[int, Meta(ge=1, lt=10**9, description="a whole number of at least 1")]
CountOrZero = Annotated[int, Meta(ge=0, lt=10**9, description="a whole number of 0 or more")]
Duration = Annotated[float, Meta(ge=0, lt=1e9, description="a number of 0 or more")]
PositiveDuration = Annotated[float, Meta(gt=0, lt=1e9, description="a number above 0")]
Port = Annotated[int, Meta(ge=0, le=65535, description="a whole number from 0 to 65535")]
SessionKind = Annotated[Literal["pipelined", "plain"], Meta(description='"pipelined" or "plain"')]


class StoreSection(msgspec.Struct, frozen=True):
    url: Text
    schema: Text
    session: SessionKind
    answer_seconds: PositiveDuration


class WorkersSection(msgspec.Struct, frozen=True):
    default_count: Count
    max_count: Count
    poll_interval_ms: Duration
    lease_timeout_seconds: Duration
    scale_interval_ms: Duration
    scale_cooldown_seconds: Duration
    scale_late_seconds: Duration
    concurrency: Count
    shutdown_grace_seconds: Duration
    request_poll_seconds: Duration
    misfit_seconds: Duration
    child_max_jobs: CountOrZero
    queues: Names


class RetentionSection(msgspec.Struct, frozen=True):
    history_days: Duration
    audit_days: Duration


class HttpSection(msgspec.Struct, frozen=True):
    host: Text
    port: Port
    tokens: Tokens
    request_timeout_seconds: Duration
    connection_count: Count
    stream_count: Count


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. `config/default.toml` describes them and has their defaults."""

    app: OptionalText
    store: StoreSection
    workers: WorkersSection
    retention: RetentionSection
    http: HttpSection
    #: Weights and limits by queue, and limits by limit key; `apply_settings` writes them.
    queues: dict[str, QueueRule] = {}
    limits: dict[str, Limit] = {}
    #: Databases for tenants besides HOME_SHARD: URLs, which can contain passwords.
    shards: dict[str, str] = {}
    #: Tenants with worker processes of their own, for `freehold up --tenants`.
    tenants: dict[str, WorkerCount] = {}
    kinds: dict[str, SimulatedKind] = {}
    #: Where each value comes from, by dotted name: ``workers.max_count``, ``queues.mail``.
    origins: dict[str, str] = {}


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "store": StoreSection,
    "workers": WorkersSection,
    "retention": RetentionSection,
    "http": HttpSection,
}
#: The type of each setting with a fixed name.
SETTING_TYPES: dict[str, Any] = {"app": OptionalText} | {
    f"{section}.{key}": kind
    for section, struct in _SECTIONS.items()
    for key, kind in get_type_hints(struct, include_extras=True).items()
}
#: Name, value and origin.
_Given: TypeAlias = tuple[str, Any, str]


def load(
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The effective settings. ``flags`` maps dotted names to values; None means: not given."""
    variables = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, value, origin in _layers(flags or {}, variables, folder or Path.cwd()):
        # In the environment every value is text.
        values[name] = _checked(name, value, origin, strict=origin not in variables)
        origins[name] = origin
    sections: dict[str, Any] = {name: _section(values, name) for name in _NAMED_SECTIONS}
    for name, struct in _SECTIONS.items():
        sections[name] = struct(**_section(values, name))
    settings = Settings(app=values["app"], origins=origins, **sections)
    _check(settings)
    return settings


def _layers(
    flags: Mapping[str, Any], variables: Mapping[str, str], folder: Path
) -> Iterator[_Given]:
    """From the lowest to the highest."""
    shipped = files("freehold").joinpath("config", "default.toml").read_text(encoding="utf-8")
    yield from _of_table(tomllib.loads(shipped), DEFAULT_ORIGIN)
    if variables.get(_FALLBACK_URL):
        yield "store.url", variables[_FALLBACK_URL], _FALLBACK_URL
    yield from _of_file(folder)
    for variable, name in _variables().items():
        if text := variables.get(variable):
            is_list = SETTING_TYPES[name] in (Names, Tokens)
            parts = [part.strip() for part in text.split(",") if part.strip()]
            yield name, parts if is_list else text, variable
    for variable, url in variables.items():
        if variable.startswith(SHARD_PREFIX):
            yield f"shards.{variable.removeprefix(SHARD_PREFIX).lower()}", url, variable
    yield from ((name, value, "flag") for name, value in flags.items() if value is not None)


def _section(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    start = f"{section}."
    return {name.removeprefix(start): v for name, v in values.items() if name.startswith(start)}


def _of_file(folder: Path) -> Iterator[_Given]:
    """freehold.toml, else [tool.freehold] of pyproject.toml, in this folder."""
    own, shared = folder / FILE_NAME, folder / "pyproject.toml"
    for path in filter(Path.is_file, (own, shared)):
        try:
            text = path.read_text(encoding="utf-8")
            content = tomllib.loads(text)
        except OSError as error:
            raise BadSettings(f"{path.name} cannot be read: {error.strerror}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadSettings(f"{path.name} is not TOML: {error}") from None
        if path == shared:
            for part in ("tool", "freehold"):
                content = _table(content.get(part, {}), part, path.name)
        if content:
            return _of_table(content, path.name, text)
    return iter(())


def _of_table(content: dict[str, Any], origin: str, text: str = "") -> Iterator[_Given]:
    for section, given in content.items():
        where = _position(origin, text, section)
        if section in _SECTIONS or section in _NAMED_SECTIONS:
            _table(given, section, where)
        if not isinstance(given, dict):
            yield section, given, where
            continue
        for key, value in given.items():
            yield f"{section}.{key}", value, _position(origin, text, key, section)


def _table(given: Any, section: str, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise BadSettings(f"{where}: {section}: give a table, which begins with [{section}]")
    return given


def _checked(name: str, value: Any, where: str, *, strict: bool) -> Any:
    """The value, converted to its type. ``strict``: a number as text is no number."""
    section, _, key = name.partition(".")
    if section in _NAMED_SECTIONS:
        return _NAMED_SECTIONS[section](key, value, where)
    if name not in SETTING_TYPES:
        raise BadSettings(f"{where}: there is no setting {name}; {_nearest(name)}")
    if (name, value) == ("http.tokens", "local"):
        return (value,)
    kind = SETTING_TYPES[name]
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError:
        # A secret that was written here by mistake must not appear in a log.
        shown = "" if name == "http.tokens" else f" = {value!r}"
        wanted = kind.__metadata__[0].description
        raise BadSettings(f"{where}: {name}{shown}: give {wanted}") from None


def _check(settings: Settings) -> None:
    """Rules that a type does not express."""
    check_schema(settings.store.schema)
    for queue in settings.workers.queues:
        _check_queue(queue)
    low, high = settings.workers.default_count, settings.workers.max_count
    if low > high:
        raise BadSettings(
            f"workers.default_count = {low} ({settings.origins['workers.default_count']}) is more "
            f"than workers.max_count = {high} ({settings.origins['workers.max_count']})"
        )


def _check_queue(name: str) -> None:
    if name != ALL_QUEUES:
        check_name("queue", name)


def _queue(name: str, fields: Any, where: str) -> QueueRule:
    _check_queue(name)
    return queue_rule_of(fields, where)


def _limit(name: str, fields: Any, where: str) -> Limit:
    check_key("limit key", name)
    return limit_of(fields, where)


def _shard(name: str, url: Any, where: str) -> str:
    """No message contains the URL: it can contain a password."""
    check_shard(name)
    if name == HOME_SHARD:
        raise BadSettings(f"{where}: the shard {HOME_SHARD!r} is the store itself: set store.url")
    if not isinstance(url, str) or not url:
        raise BadSettings(f"{where}: shards.{name}: give the URL of a database, or a file")
    return url


def _tenant(name: str, fields: Any, where: str) -> WorkerCount:
    check_tenant(name)
    return worker_count_of(fields, where)


def _kind(name: str, fields: Any, where: str) -> SimulatedKind:
    check_name("kind", name)
    return kind_of(name, fields, where)


#: Sections whose keys are chosen by the user, with the function that checks an entry.
_NAMED_SECTIONS: dict[str, Callable[[str, Any, str], Any]] = {
    "queues": _queue,
    "limits": _limit,
    "shards": _shard,
    "tenants": _tenant,
    "kinds": _kind,
}


def _variables() -> dict[str, str]:
    """Each variable of the environment and its setting."""
    names = {ENVIRONMENT_PREFIX + name.replace(".", "_").upper(): name for name in SETTING_TYPES}
    return names | _SHORT


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that are probably mistyped, each with the setting that was probably meant.

    They are reported, not refused, because programs share an environment. A variable that resembles
    no setting belongs to another program: Kubernetes sets FREEHOLD_SERVICE_HOST for a service of
    that name.
    """
    variables = os.environ if environment is None else environment
    known = {*_variables(), *_COMMAND_VARIABLES}
    # Compared without the prefix, which would make any two names similar.
    suffixes = sorted(name.removeprefix(ENVIRONMENT_PREFIX) for name in known)
    found = {}
    for variable in sorted(set(variables) - known):
        if variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(SHARD_PREFIX):
            suffix = variable.removeprefix(ENVIRONMENT_PREFIX)
            for close in get_close_matches(suffix, suffixes, n=1, cutoff=_SIMILARITY):
                found[variable] = ENVIRONMENT_PREFIX + close
    return found


def _nearest(name: str) -> str:
    close = get_close_matches(name, SETTING_TYPES, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(SETTING_TYPES))}"


def _position(origin: str, text: str, key: str, section: str = "") -> str:
    """file:line of a key, which other sections can have too; only the file if it is not found."""
    is_inside = not section
    for number, line in enumerate(text.splitlines(), 1):
        is_inside = is_inside or _has_key(line, section)
        if is_inside and _has_key(line, key):
            return f"{origin}:{number}"
    return origin


def _has_key(line: str, key: str) -> bool:
    """As in ``key = 3``, ``section.key = 3`` and ``[section."key"]``."""
    pattern = rf"\s*(\[.*|\w+\.)?\"?(?<!\w){re.escape(key)}(?!\w)"
    return re.match(pattern, line) is not None

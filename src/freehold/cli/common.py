"""What all commands share: where the store is, which app, and how to answer."""

from __future__ import annotations

import contextlib
import getpass
import importlib
import operator
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from freehold.app import Freehold
from freehold.errors import BadSettings, FreeholdError, SchemaMissing
from freehold.settings import unknown_variables

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--url",
        envvar="FREEHOLD_URL",
        show_envvar=True,
        help="The store: postgresql://user@host/database, sqlite:///file.db, or a file.",
    ),
    click.option(
        "--schema",
        envvar="FREEHOLD_SCHEMA",
        show_envvar=True,
        help="The schema in PostgreSQL. [default: freehold]",
    ),
    click.option(
        "--tenant",
        envvar="FREEHOLD_TENANT",
        show_envvar=True,
        help="A tenant's jobs, and nobody else's. `freehold tenants` lists them.",
    ),
    click.option(
        "--app",
        "app_name",
        envvar="FREEHOLD_APP",
        show_envvar=True,
        metavar="MODULE:ATTRIBUTE",
        help="Your app: for its tasks, and for its store where --url does not say otherwise.",
    ),
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def store_options(command: F) -> F:
    """--url, --schema, --tenant and --app; the command gets them as `store`."""

    def call(
        *args: Any,
        url: str | None,
        schema: str | None,
        tenant: str | None,
        app_name: str | None,
        **rest: Any,
    ) -> Any:
        app = load_app(app_name) if app_name else None
        return command(*args, store=StoreChoice(url, schema, app, app_name, tenant), **rest)

    call.__doc__ = command.__doc__
    call.__name__ = command.__name__
    # Options of the function itself were noted on it by decorators below this one.
    call.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        option(call)
    return call  # type: ignore[return-value]


class StoreChoice:
    """Which store was meant; opened by `with`."""

    def __init__(
        self,
        url: str | None,
        schema: str | None,
        app: Freehold | None,
        app_name: str | None = None,
        tenant: str | None = None,
    ) -> None:
        self.url = url
        self.schema = schema
        self.app = app
        self.app_name = app_name
        self.tenant = tenant

    @contextlib.contextmanager
    def open(self, *, may_create: bool = False) -> Iterator[Freehold]:
        """A name that is mistyped must not become a store, with nothing in it."""
        chosen = self._chosen()
        if not may_create and (missing := chosen.missing_file) is not None:
            raise SchemaMissing(
                f"there is no store {missing}: say which one by --url, or make this one with "
                "`freehold migrate`"
            )
        try:
            yield chosen if self.tenant is None else chosen.tenant(self.tenant)
        finally:
            chosen.close()

    def _chosen(self) -> Freehold:
        if self.app is None:
            return Freehold(self.url, schema=self.schema)
        if self.url is None and self.schema is None:
            return self.app
        url = self.app.url if self.url is None else self.url
        return Freehold(url, schema=self.schema or self.app.schema)


def load_app(where: str) -> Freehold:
    """The app that `module:attribute` names, as seen from the current folder."""
    module_name, _, attribute = where.partition(":")
    if not module_name or not attribute:
        raise BadSettings(f"--app {where}: give module:attribute, such as shop.tasks:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(where, module_name)
    try:
        found = operator.attrgetter(attribute)(module)
    except AttributeError:
        raise BadSettings(
            f"--app {where}: {module_name} has no {attribute}{_hint(module)}"
        ) from None
    if not isinstance(found, Freehold):
        raise BadSettings(
            f"--app {where}: that is a {type(found).__name__}, not a Freehold app{_hint(module)}"
        )
    return found


def _import(where: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except FreeholdError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            why = f"there is no module {missing} here: run it in your project's folder"
        else:
            why = f"{name} needs the module {missing}, which is not installed here"
        raise BadSettings(f"--app {where}: {why}") from error
    except (Exception, SystemExit) as error:
        raise BadSettings(
            f"--app {where}: {name} cannot be imported: {type(error).__name__}: {error}"
            f"{_place(error)}"
        ) from error


def _place(error: BaseException) -> str:
    """The last line of the caller's own that led to it; a SyntaxError tells by itself."""
    steps = traceback.extract_tb(error.__traceback__)
    own = [step for step in steps if "importlib" not in step.filename and step.filename != __file__]
    if not own or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno}; FREEHOLD_DEBUG=1 shows all of it)"


def _hint(module: Any) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, Freehold))
    return f"; did you mean {module.__name__}:{apps[0]}?" if apps else "; it defines no app"


def warn_of_unknown_variables(say: Callable[[str], object]) -> None:
    """A setting that is mistyped in the environment would be left aside without a word."""
    for variable, meant in unknown_variables().items():
        say(f"{variable} is no setting and is left aside: did you mean {meant}?")


def print_json(document: Any) -> None:
    """One document on stdout, as UTF-8 whatever the terminal thinks."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=2)
    click.echo(data)


def os_user() -> str:
    """Who does it, unless --by says otherwise."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return f"uid-{os.getuid()}"


by_option = click.option("--by", default=os_user, help="Who does it. [default: your user name]")

"""Shared by all commands: the options that choose a store, loading an app, printing JSON."""

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
from freehold.cli.text import escaped_json
from freehold.errors import BadSettings, FreeholdError, SchemaMissing
from freehold.model.audit import CLI, Author
from freehold.settings import load, unknown_variables

F = TypeVar("F", bound=Callable[..., Any])


class StoreOption(click.Option):
    """Listed in the section "Store" of the help, and not among a command's own options."""

    def get_help_record(self, ctx: click.Context) -> None:
        return None


class StoreCommand(click.Command):
    """A command with a section for its `store_options` at the end of its help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        options = [each for each in self.get_params(ctx) if isinstance(each, StoreOption)]
        if not options:
            return
        with formatter.section("Store"):
            formatter.write_dl([(f"{o.opts[0]} {o.metavar}", o.help or "") for o in options])
            formatter.write_text(f"Environment: {', '.join(str(o.envvar) for o in options)}")


class StoreGroup(StoreCommand, click.Group):
    """A group of such commands."""

    command_class = StoreCommand


_OPTIONS = (
    click.option(
        "--url",
        cls=StoreOption,
        envvar="FREEHOLD_URL",
        metavar="URL",
        help="postgresql://user@host/database, or a file.",
    ),
    click.option(
        "--schema",
        cls=StoreOption,
        envvar="FREEHOLD_SCHEMA",
        metavar="NAME",
        help="Schema in PostgreSQL. [default: freehold]",
    ),
    click.option(
        "--tenant",
        cls=StoreOption,
        envvar="FREEHOLD_TENANT",
        metavar="NAME",
        help="Use the jobs of this tenant.",
    ),
    click.option(
        "--app",
        "app_name",
        cls=StoreOption,
        envvar="FREEHOLD_APP",
        metavar="MODULE:ATTRIBUTE",
        help="Your app: its tasks and, without --url, its store.",
    ),
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def store_options(command: F) -> F:
    """--url, --schema, --tenant and --app; the command receives them as ``store``."""

    def call(
        *args: Any,
        url: str | None,
        schema: str | None,
        tenant: str | None,
        app_name: str | None,
        **rest: Any,
    ) -> Any:
        app_name = app_name or load().app
        app = load_app(app_name) if app_name else None
        return command(*args, store=StoreChoice(url, schema, app, app_name, tenant), **rest)

    call.__doc__ = command.__doc__
    call.__name__ = command.__name__
    # Decorators below this one have stored the command's own options on the function.
    call.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        option(call)
    return call  # type: ignore[return-value]


class StoreChoice:
    """The store that the options name; `open` is a context manager."""

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

    def or_else(self, other: StoreChoice) -> StoreChoice:
        """The options of a command, and those that only its group was given."""
        return StoreChoice(
            self.url or other.url,
            self.schema or other.schema,
            self.app or other.app,
            self.app_name or other.app_name,
            self.tenant or other.tenant,
        )

    @property
    def app_module(self) -> str | None:
        return self.app_name.partition(":")[0] if self.app_name else None

    @contextlib.contextmanager
    def open(self, *, may_create: bool = False) -> Iterator[Freehold]:
        """Opens an existing store. A mistyped name must not create an empty one."""
        chosen = self._chosen()
        if not may_create and (missing := chosen._missing_file) is not None:
            raise SchemaMissing(
                f"there is no store {missing}: choose another with --url, or create this one "
                "with `freehold migrate`"
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
            f"--app {where}: {module_name} has no {attribute}{_suggestion(module)}"
        ) from None
    if not isinstance(found, Freehold):
        raise BadSettings(
            f"--app {where}: that is a {type(found).__name__}, not a Freehold app"
            f"{_suggestion(module)}"
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
            f"{_location(error)}"
        ) from error


def _location(error: BaseException) -> str:
    """The last line of the app's own code in the traceback. A SyntaxError names it by itself."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and f.filename != __file__]
    if not own or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno}; FREEHOLD_DEBUG=1 shows all of it)"


def _suggestion(module: Any) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, Freehold))
    return f"; did you mean {module.__name__}:{apps[0]}?" if apps else "; it defines no app"


def warn_of_unknown_variables(warn: Callable[[str], object]) -> None:
    """Without a warning, a mistyped setting in the environment would be ignored unnoticed."""
    for variable, meant in unknown_variables().items():
        warn(f"{variable} is an unknown setting and is ignored: did you mean {meant}?")


def print_json(document: Any) -> None:
    """Prints one document on stdout, in UTF-8 whatever the terminal's encoding is. Stored text
    must not drive the terminal."""
    data = msgspec.json.format(msgspec.json.encode(document), indent=2)
    click.echo(escaped_json(data.decode()).encode())


def os_user() -> str:
    """The default of --by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return f"uid-{os.getuid()}"


by_option = click.option(
    "--by", default=os_user, help="Your name, for the history. [default: your user name]"
)


def author_options(command: F) -> F:
    """--reason and --by; the command receives both as ``author``, for the audit."""

    def call(*args: Any, by: str, reason: str | None, **rest: Any) -> Any:
        return command(*args, author=Author(by, CLI, reason), **rest)

    call.__doc__ = command.__doc__
    call.__name__ = command.__name__
    call.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    by_option(call)
    click.option("--reason", help="Reason, for the audit.")(call)
    return call  # type: ignore[return-value]


def change_by(author: Author) -> dict[str, Any]:
    """The author as arguments of an operator's verb."""
    return {"by": author.by, "reason": author.reason, "via": author.via}

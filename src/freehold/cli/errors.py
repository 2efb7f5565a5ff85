"""How a command fails: with one line of text, an exit code, and no traceback.

FREEHOLD_DEBUG=1 adds the traceback.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from freehold.cli.text import one_line
from freehold.errors import BadInput, FreeholdError, StoreError

REFUSED = 1
BAD_INPUT = 2
STORE_UNAVAILABLE = 3
BUG = 70
INTERRUPTED = 130
#: The code that a shell reports for a program ended by SIGPIPE: `freehold jobs | head -1`.
PIPE_CLOSED = 141

#: The error of a group without a command; its message is the help. Older versions of Click print
#: the help themselves.
_NO_ARGUMENTS: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)

EXIT_CODES = """\b
Exit codes:
  0   done
  1   refused: no such job, an illegal transition, a failed check of `doctor`
  2   bad input: usage, names, arguments, settings; nothing was changed
  3   the store is unavailable, read-only or full, denies a privilege, or
      needs `freehold migrate`
  70  a bug in freehold; FREEHOLD_DEBUG=1 shows where
"""


class PipeClosed(Exception):
    """The reader of our output has closed the pipe."""


class ErrorReportingGroup(click.Group):
    """A group of commands that prints errors as one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        _escape_unprintable_output()
        try:
            # Without standalone mode Click leaves errors and the code of an Exit to its caller.
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except Exception as error:
            code = _report(error, prog_name or "freehold")
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return result


def _escape_unprintable_output() -> None:
    """In a terminal of another encoding, characters become escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _report(error: Exception, program: str) -> int:
    """``program``: how this command line is called, which is what a remedy must name."""
    if isinstance(error, PipeClosed):
        _discard_output()
        return PIPE_CLOSED
    if isinstance(error, click.Abort):
        return _print_error("interrupted", INTERRUPTED)
    if isinstance(error, _NO_ARGUMENTS):
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    if isinstance(error, click.ClickException):
        return _print_error(_usage(error), BAD_INPUT)
    if os.environ.get("FREEHOLD_DEBUG") == "1":
        traceback.print_exception(error)
    if isinstance(error, FreeholdError):
        return _print_error(str(error).replace("`freehold ", f"`{program} "), _code(error))
    return _print_error(
        f"this is a bug in freehold: {type(error).__name__}: {error} "
        "(FREEHOLD_DEBUG=1 shows where; please report it)",
        BUG,
    )


def _code(error: FreeholdError) -> int:
    if isinstance(error, BadInput):
        return BAD_INPUT
    return STORE_UNAVAILABLE if isinstance(error, StoreError) else REFUSED


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} See `{context.command_path} --help`." if context else message


def _print_error(text: str, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"freehold: {one_line(text)}", err=True)
    return code


def _discard_output() -> None:
    """At exit Python flushes stdout again, which would print an error for the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())

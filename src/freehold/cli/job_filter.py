"""The options of a filter of jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from freehold.app import Freehold
from freehold.cli.types import timestamp_or_age
from freehold.model.meta import meta_of
from freehold.model.state import State
from freehold.store.types import JobFilter

F = TypeVar("F", bound=Callable[..., Any])

_TIMES = ("created_since", "created_until", "finished_since", "finished_until")
_STATES = click.Choice([state.value for state in State])


def _time_option(name: str, help: str) -> Callable[[F], F]:
    return click.option(name, type=timestamp_or_age, metavar="TIME", help=help)


_OPTIONS = (
    click.option("--state", "states", type=_STATES, multiple=True, help="Repeatable."),
    click.option("--queue"),
    click.option("--task"),
    click.option("--target", help="Only the lane with this target."),
    click.option("--tag"),
    click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Equal metadata; repeatable."),
    click.option("--error", metavar="TYPE", help="Failed with this error, such as ValueError."),
    click.option("--worker", metavar="OWNER", help="Leased or finished by this worker."),
    _time_option("--created-since", "2030-01-31T12:00:00Z, or an age: 90s, 5m, 2h, 1d."),
    _time_option("--created-until", "Created before this time."),
    _time_option("--finished-since", "Finished at this time or later."),
    _time_option("--finished-until", "Finished before this time."),
)


def filter_options(command: F) -> F:
    """The options of a filter. The command receives them by the names of `job_filter`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def job_filter(app: Freehold, fields: dict[str, Any]) -> JobFilter:
    """The filter of these options and of the search. Ages are subtracted from the store's clock."""
    states = frozenset(State(state) for state in fields["states"])
    search, rest = fields["search"], {key: fields[key] for key in fields if key != "search"}
    given = {**rest, "states": states, "meta": meta_of(fields["meta"])}
    if any(isinstance(given[name], timedelta) for name in _TIMES):
        now = app.operator.now()
        ages = {name: age for name in _TIMES if isinstance(age := given[name], timedelta)}
        given |= {name: now - age for name, age in ages.items()}
    filter = JobFilter(**given)
    return app.operator.search(search, filter) if search else filter

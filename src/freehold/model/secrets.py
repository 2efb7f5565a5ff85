"""Secret arguments and results: delivered to the handler, shown nowhere.

The names of a job's secret arguments are stored with its policy, so that a process without the
task's code hides them too. A `Job`, which is what all interfaces show, never contains the values:
they are hidden when its row is read. Only an `Attempt`, which its worker gets, has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from freehold.model.payload import stored_object

#: Stands in the place of a secret value.
HIDDEN = "[secret]"
#: A shorter value would be found inside of words that have nothing to do with it.
_SHORTEST = 4


class Secret:
    """Marks a parameter or a result: ``password: Annotated[str, Secret]``."""


def hide_arguments(args: str, names: Collection[str]) -> str:
    """The stored arguments without the secret values; all of them, if they cannot be read."""
    values = stored_object(args)
    if values is None:
        return msgspec.json.encode(HIDDEN).decode()
    shown = {name: HIDDEN if name in names else value for name, value in values.items()}
    return msgspec.json.encode(shown).decode()


def secret_texts(args: str, names: Collection[str]) -> list[str]:
    """The secret values, as they may appear in a text: longest first, without very short ones."""
    values = stored_object(args) or {}
    texts: set[str] = set()
    for leaf in _leaves([values[name] for name in names if name in values]):
        texts.add(str(leaf))
        if isinstance(leaf, str):  # as Python and JSON quote it, without the quotation marks
            texts |= {repr(leaf)[1:-1], msgspec.json.encode(leaf).decode()[1:-1]}
    return sorted((each for each in texts if len(each) >= _SHORTEST), key=len, reverse=True)


def _leaves(values: Iterable[Any]) -> Iterable[Any]:
    waiting = list(values)
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += (*item, *item.values())
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield item


def hide_texts(text: str, secrets: Iterable[str]) -> str:
    for each in secrets:
        text = text.replace(each, HIDDEN)
    return text

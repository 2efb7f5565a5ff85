"""The places that the settings name, opened when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from freehold.errors import BadSettings
from freehold.fork_safety import lock_of
from freehold.store.movable_shard import MovableShard


class Shards:
    """By name; HOME is one of them."""

    def __init__(self, urls: Mapping[str, str], opener: Callable[[str], MovableShard]) -> None:
        self._urls = dict(urls)
        self._opener = opener
        self._opened: dict[str, MovableShard] = {}
        self._lock = lock_of(self)

    def __getitem__(self, name: str) -> MovableShard:
        if name not in self._urls:
            raise BadSettings(
                f"there is no place {name!r}: known are {', '.join(self.names)}; name it under "
                f"[places] in the settings, or as FREEHOLD_PLACE_{name.upper()}"
            )
        with self._lock:
            if name not in self._opened:
                self._opened[name] = self._opener(self._urls[name])
            return self._opened[name]

    @property
    def names(self) -> list[str]:
        return sorted(self._urls)

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, {}
        for place in opened.values():
            place.close()

    async def aclose(self) -> None:
        """What the running loop used."""
        for place in tuple(self._opened.values()):
            await place.aclose()

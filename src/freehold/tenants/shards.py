"""The configured shards, opened at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from freehold.errors import BadSettings
from freehold.fork_safety import lock_of
from freehold.store.shard import MovableShard


class Shards:
    """By name; HOME_SHARD is one of them."""

    def __init__(self, urls: Mapping[str, str], opener: Callable[[str], MovableShard]) -> None:
        self._urls = dict(urls)
        self._opener = opener
        self._opened: dict[str, MovableShard] = {}
        self._lock = lock_of(self)

    def __getitem__(self, name: str) -> MovableShard:
        if name not in self._urls:
            raise BadSettings(
                f"there is no shard {name!r}: known are {', '.join(self.names)}; add its URL under "
                f"[shards] in the settings, or as FREEHOLD_SHARD_{name.upper()}"
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
        for shard in opened.values():
            shard.close()

    async def aclose(self) -> None:
        """Close what belongs to the running event loop."""
        for shard in tuple(self._opened.values()):
            await shard.aclose()

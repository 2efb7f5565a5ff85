"""Litestar: a plugin with the lifespan, the app as a dependency, the API and the command line.

Litestar(route_handlers=[...], plugins=[FreeholdPlugin(queue, worker=True)])
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import click

from freehold.app import Freehold
from freehold.contrib.missing_package import missing
from freehold.http import api
from freehold.http.auth import Identify

try:
    from litestar import Litestar, asgi
    from litestar.config.app import AppConfig
    from litestar.di import Provide
    from litestar.plugins import CLIPluginProtocol, InitPluginProtocol
    from litestar.types import ASGIApp, Receive, Scope, Send
except ImportError as error:
    raise missing(error, "litestar", "litestar") from None


class FreeholdPlugin(InitPluginProtocol, CLIPluginProtocol):
    """``name``: of the parameter by which route handlers get the app, and of its commands. With
    ``mount`` the API is served under that path, for callers that ``identify`` knows, or with the
    tokens of the settings. Other arguments are those of `app.running`."""

    def __init__(
        self,
        app: Freehold,
        *,
        name: str = "queue",
        mount: str | None = None,
        identify: Identify | None = None,
        worker: bool = False,
        **settings: Any,
    ) -> None:
        self._app = app
        self._name = name
        self._mount = mount
        self._identify = identify
        self._settings = {"worker": worker, **settings}

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        app_config.lifespan.append(self._running)
        app_config.dependencies[self._name] = Provide(lambda: self._app, sync_to_thread=False)
        app_config.signature_types.append(Freehold)
        if self._mount is not None:
            served = _mounted(api(self._app, identify=self._identify), self._mount)
            app_config.route_handlers.append(
                asgi(self._mount, is_mount=True, copy_scope=True)(served)
            )
        return app_config

    @asynccontextmanager
    async def _running(self, _web: Litestar) -> AsyncIterator[None]:
        async with self._app.running(**self._settings):
            yield

    def on_cli_init(self, cli: click.Group) -> None:
        """The commands of `freehold` as `litestar queue ...`."""
        from freehold.cli import main

        cli.add_command(main, self._name)


def _mounted(served: Any, at: str) -> ASGIApp:
    """Litestar ends the path of each request with a slash, and leaves out where it is mounted."""

    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes | None = dict(scope).get("raw_path")  # type: ignore[assignment] # optional
        path = (
            f"{at}{scope['path'].rstrip('/')}" if raw is None else unquote(raw.partition(b"?")[0])
        )
        root = scope.get("root_path", "") + at
        await served({**scope, "path": path, "root_path": root}, receive, send)

    return mounted

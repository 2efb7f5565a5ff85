"""An ASGI application inside of a Django view, under WSGI and ASGI alike.

The application runs on an event loop of its own, in one thread of the process: its connections to
the store belong to a loop, and under WSGI each request would have another one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from freehold.fork_safety import ForkAware, lock_of, notice_forks

T = TypeVar("T")
Application = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]


class LoopThread(ForkAware):
    """An event loop that runs from its first use to the end of the process."""

    def __init__(self) -> None:
        self._lock = lock_of(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        notice_forks(self)

    def after_fork_in_child(self) -> None:
        self._loop = None  # its thread is in the parent

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """From any event loop. If the caller is canceled, so is the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._loop.run_forever, name="freehold-dashboard", daemon=True
                )
                thread.start()
            return self._loop


@dataclass(frozen=True, slots=True)
class _Start:
    status: int
    headers: list[tuple[str, str]]

    @property
    def is_stream(self) -> bool:
        return any(
            name == "content-type" and value.startswith("text/event-stream")
            for name, value in self.headers
        )


class Exchange:
    """One request of an application. All methods run on its event loop."""

    def __init__(self, application: Application, scope: dict[str, Any], body: bytes) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._request: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        self._task = asyncio.create_task(
            application(scope, self._receive, self._messages.put), name="dashboard request"
        )
        self._task.add_done_callback(lambda _: self._messages.put_nowait(None))

    async def _receive(self) -> Any:
        if self._request:
            return self._request.pop()
        return await asyncio.Event().wait()  # a client that has gone is noticed by `end`

    async def start(self) -> _Start:
        message = await self._messages.get()
        if message is None:
            self._task.result()
            raise RuntimeError("the dashboard has sent no response")
        pairs = [
            (name.decode("latin-1"), text.decode("latin-1")) for name, text in message["headers"]
        ]
        return _Start(message["status"], pairs)

    async def chunk(self) -> bytes | None:
        """None: that was all."""
        message = await self._messages.get()
        if message is None:
            self._task.result()
            return None
        return bytes(message.get("body", b""))

    async def whole(self) -> bytes:
        chunks = []
        while (chunk := await self.chunk()) is not None:
            chunks.append(chunk)
        return b"".join(chunks)

    async def end(self) -> None:
        self._task.cancel()


class Bridge:
    """Passes requests of Django to an application, and its responses back. ``when_idle`` is called
    on the event loop of the application whenever its last open request has ended."""

    def __init__(
        self, application: Application, thread: LoopThread, when_idle: Callable[[], Awaitable[None]]
    ) -> None:
        self._application = application
        self._thread = thread
        self._when_idle = when_idle
        self._open = 0

    async def respond(
        self, request: HttpRequest, root: str, more_scope: dict[str, Any]
    ) -> HttpResponseBase:
        """``root``: where the application is mounted."""
        scope = {**scope_of(request, root), **more_scope}
        exchange, start, body = await self._thread.run(self._begun(scope, request.body))
        response: HttpResponseBase
        if body is not None:
            response = HttpResponse(body, status=start.status)
        else:
            response = StreamingHttpResponse(self._chunks(exchange), status=start.status)
        for name, value in start.headers:
            if name == "set-cookie":
                response.cookies.load(value)
            else:
                response.headers[name] = value
        return response

    async def _begun(
        self, scope: dict[str, Any], body: bytes
    ) -> tuple[Exchange, _Start, bytes | None]:
        exchange = Exchange(self._serve, scope, body)
        try:
            start = await exchange.start()
            return exchange, start, None if start.is_stream else await exchange.whole()
        except BaseException:
            await exchange.end()
            raise

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        self._open += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._open -= 1
            if not self._open:
                await self._when_idle()

    async def _chunks(self, exchange: Exchange) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._thread.run(exchange.chunk())) is not None:
                yield chunk
        finally:
            await self._thread.run(exchange.end())


def scope_of(request: HttpRequest, root: str) -> dict[str, Any]:
    """With the host as Django knows it, which may be that of a proxy. Raises DisallowedHost."""
    client = request.META.get("REMOTE_ADDR")
    headers = {**request.headers, "Host": request.get_host()}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": quote(request.path).encode(),
        "root_path": root,
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in headers.items()
        ],
        "client": (client, 0) if client else None,
        "server": None,
    }


def can_stream(request: HttpRequest) -> bool:
    """Under WSGI an open stream would keep a process or a thread of the server."""
    return isinstance(request, ASGIRequest)

"""/metrics and /livez of one worker process.

They use their own thread and not the store, so that they respond while a handler blocks the
event loop or the database is unreachable.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler

from freehold.errors import BadSettings
from freehold.http_auth import (
    Role,
    Token,
    caller_of,
    check_address,
    refusal_of_browser,
    refusal_of_proxy,
)
from freehold.prometheus import CONTENT_TYPE, metrics_text, process_metrics
from freehold.telemetry import Telemetry, log
from freehold.worker.config import WorkerSettings
from freehold.worker.select_server import SelectServer


class MetricsServer:
    """Serves the metrics of this process until it is closed. ``tenant``: the tenant of a worker
    that has only one."""

    def __init__(
        self,
        telemetry: Telemetry,
        host: str,
        port: int,
        tokens: Sequence[Token] = (),
        tenant: str | None = None,
    ) -> None:
        check_address(host, tokens)
        self._telemetry = telemetry
        self._tokens = tokens
        self._tenant = tenant
        try:
            self._server = SelectServer(host, port, self._respond)
        except OSError as error:
            raise BadSettings(
                f"metrics cannot be served on {host}, port {port} ({error.strerror}): choose "
                "another --metrics-port, or 0 for any free one"
            ) from None
        self.port = self._server.port
        self._server.start()
        log.info("metrics are served on http://%s:%d/metrics", host, self.port)

    def _respond(self, head: bytes) -> bytes:
        return _Handler(head, self._telemetry, self._tokens, self._tenant).wfile.getvalue()

    def close(self) -> None:
        self._server.close()


@contextlib.contextmanager
def serve_metrics(
    telemetry: Telemetry, settings: WorkerSettings, tenant: str | None = None
) -> Iterator[None]:
    """Within the block, if the settings have a port."""
    if settings.metrics_port is None:
        yield
        return
    host, port = settings.metrics_host, settings.metrics_port
    server = MetricsServer(telemetry, host, port, settings.tokens, tenant)
    with contextlib.closing(server):
        yield


class _Handler(BaseHTTPRequestHandler):
    """Handles one request, from bytes to bytes."""

    server_version = "freehold"
    sys_version = ""
    rfile: io.BytesIO
    wfile: io.BytesIO

    def __init__(
        self, head: bytes, telemetry: Telemetry, tokens: Sequence[Token], tenant: str | None
    ) -> None:
        self.telemetry = telemetry
        self.tokens = tokens
        self.tenant = tenant
        self.rfile, self.wfile = io.BytesIO(head), io.BytesIO()
        self.client_address = ("", 0)
        self.handle()

    def do_GET(self) -> None:
        if self.path == "/livez":
            self._respond(200, "alive\n")
        elif self.path == "/metrics":
            self._metrics()
        else:
            self._respond(404, "there are /livez and /metrics\n")

    def _metrics(self) -> None:
        tokens, headers = self.tokens, self.headers
        refusal = (
            None
            if tokens
            else refusal_of_proxy(headers)
            or refusal_of_browser(headers["Host"], headers["Origin"], headers["Sec-Fetch-Site"])
        )
        caller = caller_of(headers["Authorization"], tokens)
        if refusal is not None:
            self._respond(403, f"{refusal}\n")
        elif caller is None:
            self._respond(401, "a token of http.tokens is needed\n")
        elif not caller.may(Role.VIEWER, self.tenant):
            self._respond(403, "the metrics of this worker need a token without @tenant\n")
        else:
            text = metrics_text(process_metrics(self.telemetry))
            self._respond(200, text, CONTENT_TYPE)

    def _respond(self, status: int, text: str, content_type: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: these requests arrive every few seconds."""

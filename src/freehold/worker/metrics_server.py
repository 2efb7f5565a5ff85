"""/metrics and /livez of one worker process.

They use their own threads and not the store, so that they respond while a handler blocks the
event loop or the database is unreachable.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer

from freehold.errors import BadSettings
from freehold.http_auth import Role, Token, caller_of, check_address, refusal_of_browser
from freehold.prometheus import CONTENT_TYPE, metrics_text, process_metrics
from freehold.telemetry import Telemetry, log
from freehold.worker.config import WorkerSettings

#: A client that sends nothing for this long is disconnected.
_CLIENT_TIMEOUT_SECONDS = 5.0


class MetricsServer:
    """Serves the metrics of this process until it is closed."""

    def __init__(
        self, telemetry: Telemetry, host: str, port: int, tokens: Sequence[Token] = ()
    ) -> None:
        check_address(host, tokens)
        try:
            self._server = _MetricsHttpServer(host, port, telemetry, tokens)
        except OSError as error:
            raise BadSettings(
                f"metrics cannot be served on {host}, port {port} ({error.strerror}): choose "
                "another --metrics-port, or 0 for any free one"
            ) from None
        self.port: int = self._server.server_address[1]
        self._host = host
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="freehold-metrics", daemon=True)
        self._thread.start()
        log.info("metrics are served on http://%s:%d/metrics", host, self.port)

    def _serve(self) -> None:
        """serve_forever would wake up twice a second to check whether it should end."""
        while not self._closing:
            self._server.handle_request()

    def close(self) -> None:
        self._closing = True
        here = (self._host, self.port)
        with contextlib.suppress(OSError), socket.create_connection(here):
            self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def serve_metrics(telemetry: Telemetry, settings: WorkerSettings) -> Iterator[None]:
    """Within the block, if the settings have a port."""
    if settings.metrics_port is None:
        yield
        return
    server = MetricsServer(telemetry, settings.metrics_host, settings.metrics_port, settings.tokens)
    with contextlib.closing(server):
        yield


class _MetricsHttpServer(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, telemetry: Telemetry, tokens: Sequence[Token]) -> None:
        self.telemetry = telemetry
        self.tokens = tokens
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_TIMEOUT_SECONDS
    server: _MetricsHttpServer
    server_version = "freehold"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path == "/livez":
            self._respond(200, "alive\n")
        elif self.path == "/metrics":
            self._metrics()
        else:
            self._respond(404, "there are /livez and /metrics\n")

    def _metrics(self) -> None:
        tokens, headers = self.server.tokens, self.headers
        refusal = (
            None
            if tokens
            else refusal_of_browser(headers["Host"], headers["Origin"], headers["Sec-Fetch-Site"])
        )
        caller = caller_of(headers["Authorization"], tokens)
        if refusal is not None:
            self._respond(403, f"{refusal}\n")
        elif caller is None or not caller.may(Role.VIEWER, caller.tenant):
            self._respond(401, "a token of http.tokens is needed\n")
        else:
            text = metrics_text(process_metrics(self.server.telemetry))
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

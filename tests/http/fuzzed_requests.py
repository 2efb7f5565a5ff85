"""Requests made from a seed: every route and method, with hostile paths, queries, headers and
bodies, as bytes for a socket. The same seed and number always give the same request."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import msgspec

from freehold.http.asgi import TABLE
from freehold.http.routes import Route
from tests.http.api_client import TOKENS

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "F00")
LARGEST = 2**63 - 1
CONFLICTING = tuple(route for route in TABLE if 409 in route.problems)
(ENQUEUE,) = (route for route in TABLE if route.name == "POST /api/jobs")

#: Texts in the place of any text or number of a URL.
URL_TEXTS = (
    *("1", "2", "3", "4", "ours", "default", "lane", "greet", "true", "queued"),
    *("0", "-1", "1.5", "1e3", "null", "NaN", "*", "x" * 201, "x" * 6000, "9" * 5000),
    *(str(LARGEST), str(LARGEST + 1), "0" * 4400, "%D9%A3", "0x10", "1_0", "+1", "%201"),
    *("%00", "%0A", "%0D%0AX-Injected:%201", "%FF", "%ED%A0%80", "%E2%80%AE", "%F0%9F%92%A9"),
    *("%", "%zz", "%2", "%25", "..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a%2Fb", "%5C"),
    *("'%20or%201=1--", "%22;drop%20table%20job;--", "{id}", "${x}", "%s%n", "a;b=c", "a:b", "~"),
)
#: Values in the place of any value of a body.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, 1e308, LARGEST, LARGEST + 1, 10**400, -(10**30)),
    *("", "a", "greet", "default", "ours", "x" * 201, "x" * 20_000, "\0", "a\nb", "\x1b[2J"),
    *("\u202e", "\ud800", "💩", "9" * 5000, "2100-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59+00:01", "2026-13-45", "5/min", "0/s", "1e99/h", "100/min/min", "*"),
    *([], [1], ["a"] * 200, [[[]]], {}, {"a": 1}, {"": ""}, {"\0": "\0"}, {"a": {"b": [None]}}),
)
BODIES: dict[str, dict[str, Any]] = {
    "/api/jobs": {"task": "greet", "args": {"name": "x"}},
    "/api/signals": {"name": "paid", "value": {"cents": 5}},
    "/api/queues/{name}/set_weight": {"weight": 2},
    "/api/tenants": {"name": "fresh"},
    "/api/tenants/{tenant}/set_weight": {"weight": 2},
    "/api/tenants/{tenant}/drop": {"name": "ours", "force": True},
}
#: Bodies that are no JSON object, or not JSON at all.
RAW_BODIES = (
    *(b"", b"{", b"}", b"[]", b"null", b"0", b'"x"', b"\xff\xfe", b"\x00", b"{}" * 3, b"nope"),
    *(b"[" * 50_000, b'{"a":' * 5000, b"1" * 10_000, b'{"task": "\xff"}', b'{"a":"\\ud800"}'),
    *(b'{"task":"greet","task":"broken"}', b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b" " * 70_000),
    *(b'{"args": NaN}', b'{"max": 1e999}', b'{"max": -0}', b"\x1f\x8b\x08\x00", b"a=1&b=2"),
)
#: Values of headers. Each header also gets the values of the others.
HEADERS: dict[str, tuple[bytes, ...]] = {
    "Last-Event-ID": (
        *(b"0", b"1", b"-1", b"", b"x", b"9" * 19, b"9" * 5000, b"0" * 4400),
        *(b"0" * 20 + b"9" * 100, b"1" + b"0" * 400, b"0" * 9000, b"9223372036854775808"),
    ),
    "Range": (b"bytes=0-", b"bytes=-1", b"bytes=5-1", b"bytes=0-0,1-1,2-2", b"lines=1-2"),
    "Accept": (b"*/*", b"text/html", b"application/json;q=0", b",,,;;;", b"text/event-stream"),
    "Accept-Encoding": (b"gzip, br", b"identity;q=0", b"*;q=0"),
    "Accept-Charset": (b"utf-7", b"*"),
    "Idempotency-Key": (b"k", b"", b"k" * 300, b"\xff\xfe", b"a b"),
    "If-None-Match": (b"*", b'"x"', b"W/"),
    "If-Modified-Since": (b"Thu, 01 Jan 1970 00:00:00 GMT", b"never"),
    "Expect": (b"100-continue", b"200-ok"),
    "Upgrade": (b"websocket", b"h2c", b"TLS/1.0"),
    "Connection": (b"close", b"keep-alive", b"Upgrade", b"Upgrade, HTTP2-Settings", b"\x80"),
    "Sec-WebSocket-Key": (b"dGhlIHNhbXBsZSBub25jZQ==",),
    "Content-Encoding": (b"gzip", b"br", b"identity"),
    "Origin": (b"null", b"http://localhost", b"http://evil.example", b"["),
    "Host": (b"localhost", b"evil.example", b"[", b"", b"a b", b"localhost:99999999"),
    "X-Forwarded-For": (b"1.2.3.4", b"unknown", b"," * 1000),
    "X-HTTP-Method-Override": (b"DELETE",),
    "Cookie": (b"a=b", b"=;=;" * 500),
    "Referer": (b"http://[", b"javascript:"),
    "User-Agent": (b"", b"\x7f" * 50, b"u" * 3000),
    "Trailer": (b"Authorization",),
    "TE": (b"trailers, deflate",),
}
AUTHORIZATIONS = (
    *(b"", b"Bearer", b"Bearer ", b"bearer  x", b"Basic YTpi", b"Bearer \xff\xfe", b"\x80"),
    *(b"Bearer " + b"t" * 8000, b"Digest a=b", b"Bearer a b c", b"Bearer,Bearer"),
)
CONTENT_TYPES = (
    *(b"application/json", b"application/json; charset=utf-8", b"APPLICATION/JSON", b"text/plain"),
    *(b"", b"application/json;" + b";" * 500, b"application/x-www-form-urlencoded", b"\xff/\xff"),
    *(b"multipart/form-data; boundary=x", b"application/json, text/plain"),
)
#: The server refuses a longer head, if it does not arrive in one piece.
HEAD_LIMIT = 16 * 1024
CONTENT_LENGTHS = (b"-1", b"+5", b"0x10", b"1e3", b"", b" ", b"5, 5", b"9" * 30, b"\xb2", b"1 2")


class FuzzedRequest(NamedTuple):
    """``well_formed``: it is correct HTTP, so that the response is that of the API."""

    data: bytes
    method: str
    well_formed: bool


def fuzzed_request(seed: int, number: int) -> FuzzedRequest:
    chance = random.Random(f"{seed} {number}")
    route = _route(chance, number)
    method = route.method if chance.random() < 0.75 else chance.choice(METHODS)
    headers = [*_headers(chance, route), ("Authorization", _authorization(chance))]
    body = _body(chance, route)
    framing, body, framed = _framed(chance, body)
    headers += framing
    if route.body is not None or chance.random() < 0.2:
        is_json = chance.random() < 0.85
        value = b"application/json" if is_json else chance.choice(CONTENT_TYPES)
        headers.append(("Content-Type", value))
    if not any(name == "Host" for name, _ in headers) and chance.random() < 0.98:
        headers.append(("Host", b"localhost"))
    chance.shuffle(headers)
    version, odd = _oddity(chance)
    head = f"{method} {_target(chance, route)} {version}\r\n".encode()
    lines = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers)
    well_formed = framed and not odd and all(map(_is_well_formed, headers))
    well_formed = well_formed and [name for name, _ in headers].count("Host") == 1
    well_formed = well_formed and len(head + lines) <= HEAD_LIMIT
    return FuzzedRequest(head + odd + lines + b"\r\n" + body, method, well_formed)


def _route(chance: random.Random, number: int) -> Route:
    """All of them in turn, and more of those that have most to read, or that can conflict with the
    state of a job."""
    turn, kind = divmod(number, 6)
    if kind == 0:
        return ENQUEUE
    return chance.choice(CONFLICTING) if kind == 1 else TABLE[(turn * 4 + kind) % len(TABLE)]


def _is_well_formed(header: tuple[str, bytes]) -> bool:
    """Without an upgrade, which ends HTTP, and without bytes that a value cannot have."""
    name, value = header
    if name in ("Upgrade", "Connection", "Host", "Expect", "Trailer"):
        return value in (b"localhost", b"close", b"keep-alive")
    return all(32 <= byte < 127 for byte in value)


def _target(chance: random.Random, route: Route) -> str:
    texts = {name: chance.choice(URL_TEXTS) for name in ("id", "name", "target", "key", "tenant")}
    if chance.random() < 0.6:  # a path that exists more often
        texts |= {"id": str(chance.randrange(1, 9)), "name": "default", "tenant": "ours"}
    path = route.at.format(**texts)
    match chance.randrange(40):
        case 0:
            path = path.replace("/", chance.choice(("//", "/./", "/../", "%2F")), 2)
        case 1:
            path += chance.choice(("/", "?", "#x", "//", "/..;/", "%00"))
        case 2:
            path = f"http://localhost{path}"
    return path + _query(chance, route)


def _query(chance: random.Random, route: Route) -> str:
    names = ["x", "", "a[b]", "%00", "after", "limit"]
    if route.query is not None:
        names += [each.name for each in msgspec.structs.fields(route.query)] * 4
    elif chance.random() < 0.8:
        return ""
    count = chance.choice((0, 0, 1, 1, 2, 3, 300 if chance.random() < 0.05 else 1))
    parts = [
        chance.choice(names) + chance.choice(("=", "=", "=", "==", "")) + chance.choice(URL_TEXTS)
        for _ in range(count)
    ]
    return "?" + chance.choice(("&", "&", ";")).join(parts) if parts else ""


def _authorization(chance: random.Random) -> bytes:
    if chance.random() < 0.8:
        role = "admin" if chance.random() < 0.6 else chance.choice(tuple(TOKENS))
        return f"Bearer {TOKENS[role]}".encode()
    return chance.choice(AUTHORIZATIONS)


def _headers(chance: random.Random, route: Route) -> list[tuple[str, bytes]]:
    found = [(name, chance.choice(HEADERS[name])) for name in route.headers]
    for _ in range(chance.randrange(4)):
        name = chance.choice(tuple(HEADERS))
        source = name if chance.random() < 0.8 else chance.choice(tuple(HEADERS))
        found.append((name, chance.choice(HEADERS[source])))
    if chance.random() < 0.02:
        found += [(f"X-{n}", b"v" * 10) for n in range(chance.choice((50, 300)))]
    return found


def _body(chance: random.Random, route: Route) -> bytes:
    if route.body is None:
        return chance.choice(RAW_BODIES) if chance.random() < 0.1 else b""
    if chance.random() < 0.2:
        return chance.choice(RAW_BODIES)
    document = dict(BODIES.get(route.at, {}))
    names = [each.name for each in msgspec.structs.fields(route.body)] or ["x"]
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        name = chance.choice(names) if chance.random() < 0.95 else "unknown"
        document[name] = chance.choice(VALUES)
    return json.dumps(document, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _framed(chance: random.Random, body: bytes) -> tuple[list[tuple[str, bytes]], bytes, bool]:
    """The headers and bytes of the body, and whether they fit together."""
    length = ("Content-Length", str(len(body)).encode())
    chunked = ("Transfer-Encoding", b"chunked")
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    match chance.randrange(60):
        case 0:
            return [("Content-Length", chance.choice(CONTENT_LENGTHS))], body, False
        case 1:
            return [("Content-Length", str(len(body) + 50).encode())], body, False
        case 2:
            return [("Content-Length", str(max(0, len(body) - 5)).encode())], body, False
        case 3:
            return [length, chunked], chunks, False
        case 4:
            return [length, length], body, False
        case 5:
            return (
                [chunked],
                chance.choice((b"zz\r\n", b"ffffffffffffffffff\r\n", b"5\r\nab")),
                False,
            )
        case 6:
            return [("Transfer-Encoding", b"gzip, chunked")], chunks, False
        case 7 | 8 | 9:
            return [chunked], chunks, True
        case 10:
            return [], body, not body
    return [length], body, True


def _oddity(chance: random.Random) -> tuple[str, bytes]:
    """The version, and a line that HTTP does not allow."""
    match chance.randrange(100):
        case 0:
            return chance.choice(("HTTP/9.9", "HTTP/1", "http/1.1", "", "HTTP/2.0")), b"x: y\r\n"
        case 1:
            return "HTTP/1.1", chance.choice(
                (b"no colon\r\n", b" folded: x\r\n", b"a\0b: c\r\n", b": empty\r\n", b"a : b\r\n")
            )
        case 2:
            return "HTTP/1.1", b"Big: " + b"b" * chance.choice((20_000, 100_000)) + b"\r\n"
        case 3:
            return "HTTP/1.0", b""
    return "HTTP/1.1", b""

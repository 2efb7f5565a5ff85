"""Authentication over HTTP: bearer tokens with roles, or callers on this machine.

A token is configured as `role:source` or `role@tenant:source`, where the source is one of

    env:NAME       the token is the value of this environment variable
    file:PATH      the token is the content of this file
    sha256:HEX     only the token's SHA-256 is known here

Without any token, the API makes one itself and keeps it in a private file of this user: see
`local_token`. With `"local"` in place of tokens every caller on this machine is an admin, on a
loopback address, unless the request was forwarded by a proxy or sent by a web page: see
`refusal_of_proxy` and `refusal_of_browser`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from freehold.errors import BadSettings
from freehold.private_folder import private_folder

#: In place of tokens: every caller on this machine is an admin.
LOCAL_ACCESS = "local"
#: The file of the token that the API makes itself, in the private folder of this user.
TOKEN_FILE = "api-token"
#: A shorter token could be guessed.
TOKEN_CHARACTERS = 16
_TOKEN = re.compile(
    r"(?P<role>[a-z]+)(?:@(?P<tenant>[a-z][a-z0-9_]{0,30}))?"
    r":(?P<source>env|file|sha256):(?P<value>.+)"
)


class Role(IntEnum):
    """Each role includes the rights of the roles before it."""

    ANYONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


class Token(NamedTuple):
    """A configured token: its digest, never the token itself."""

    role: Role
    tenant: str | None
    digest: str


class Caller(NamedTuple):
    """An authenticated caller. ``tenant`` is None for callers with access to all tenants;
    ``token`` is the position of the token in http.tokens, from 1 on; 0: there are no tokens."""

    name: str
    role: Role
    tenant: str | None = None
    token: int = 0

    def may(self, role: Role, tenant: str | None) -> bool:
        return self.role >= role and self.tenant in (None, tenant)


LOCAL = Caller("local", Role.ADMIN)


def tokens_of(
    texts: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[Token, ...]:
    """The configured tokens, read from their sources; none for LOCAL_ACCESS."""
    if list(texts) == [LOCAL_ACCESS]:
        return ()
    return tuple(_token(text, os.environ if environment is None else environment) for text in texts)


def _token(text: str, environment: Mapping[str, str]) -> Token:
    found = _TOKEN.fullmatch(text)
    if found is None or found["role"] not in ("viewer", "operator", "admin"):
        # The message does not contain the text: it may be a secret, written here by mistake.
        raise BadSettings(
            "http.tokens: write each as role:env:NAME, role:file:PATH or role:sha256:HEX, with the "
            "role viewer, operator or admin; role@tenant for one tenant only; or only local, by "
            "which every account of this machine is an admin"
        )
    role, tenant, value = Role[found["role"].upper()], found["tenant"], found["value"]
    if found["source"] == "sha256":
        if not re.fullmatch("[0-9a-f]{64}", value):
            raise BadSettings("http.tokens: after sha256: give 64 hexadecimal digits")
        return Token(role, tenant, value)
    secret = _secret(found["source"], value, environment)
    if len(secret) < TOKEN_CHARACTERS or not secret.isascii() or not secret.isprintable():
        raise BadSettings(
            f"http.tokens: the token of {found['source']}:{value} is missing or unusable: give "
            f"at least {TOKEN_CHARACTERS} random letters and digits"
        )
    return Token(role, tenant, _digest(secret))


def token_variables(texts: Sequence[str]) -> frozenset[str]:
    """The environment variables that contain tokens. Handlers of jobs must not get them."""
    found = (_TOKEN.fullmatch(text) for text in texts)
    return frozenset(each["value"] for each in found if each and each["source"] == "env")


def api_tokens(texts: Sequence[str]) -> tuple[Token, ...]:
    """The tokens of an API: the configured ones, or the one in this user's private file. None means
    LOCAL_ACCESS."""
    if texts:
        return tokens_of(texts)
    return tokens_of([f"admin:file:{local_token()}"])


def local_token() -> Path:
    """The file with the token of this user and machine. It is created at first use, and then kept,
    so that clients need no change after a restart."""
    folder = private_folder()
    path, new = folder / TOKEN_FILE, folder / f".{TOKEN_FILE}-{os.getpid()}"
    if not path.exists():
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stat.S_IRUSR | stat.S_IWUSR)
        with os.fdopen(file, "w") as out:
            out.write(secrets.token_urlsafe(32) + "\n")
        with contextlib.suppress(FileExistsError):  # another process was faster
            path.hardlink_to(new)
        new.unlink()
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise BadSettings(f"{path} can be read by other users: remove it, a new one is made")
    return path


def sign_in_code(secret: str, ends_at: int) -> str:
    """For an address that signs in to the dashboard until a time (seconds since 1970). Logs may
    contain the code: unlike the token, from which it is made, it is of no use later."""
    key = hmac.new(secret.encode(), f"sign-in until {ends_at}".encode(), "sha256")
    return f"{ends_at}.{key.hexdigest()}"


def is_sign_in_code(code: str, secret: str, now: float) -> bool:
    ends_at, _, _ = code.partition(".")
    if not (ends_at.isascii() and ends_at.isdecimal() and len(ends_at) < 16):
        return False
    right = hmac.compare_digest(code.encode(), sign_in_code(secret, int(ends_at)).encode())
    return right and now < int(ends_at)


def _secret(source: str, value: str, environment: Mapping[str, str]) -> str:
    if source == "env":
        return environment.get(value, "")
    try:
        return Path(value).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def shown_token(text: str) -> str:
    """The token as it may be shown: without its digest, from which a weak token can be guessed."""
    if text == LOCAL_ACCESS:
        return text
    found = _TOKEN.fullmatch(text)
    if found is None:
        return "…"
    return text if found["source"] != "sha256" else f"{text.partition(':')[0]}:sha256:…"


def caller_of(authorization: str | None, tokens: Sequence[Token]) -> Caller | None:
    """The caller of the header `Authorization: Bearer …`; None if the token is not known."""
    if not tokens:
        return LOCAL
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    digest, position = _digest(secret.strip()), 0
    for n, token in enumerate(tokens, 1):  # all of them, so that the duration reveals nothing
        if hmac.compare_digest(digest, token.digest):
            position = n
    if not position:
        return None
    return token_caller(tokens[position - 1], position)


def token_caller(token: Token, position: int) -> Caller:
    """``position``: of the token in http.tokens, from 1 on."""
    tenant = f"@{token.tenant}" if token.tenant else ""
    return Caller(f"{token.role.name.lower()}{tenant}", token.role, token.tenant, position)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


# -- this machine ----------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def check_address(host: str, tokens: Sequence[Token]) -> None:
    """Without tokens nothing is served to other machines."""
    if not tokens and not is_loopback(host):
        raise BadSettings(
            f"host {host} can be reached from other machines: set http.tokens first, or serve on "
            "127.0.0.1"
        )


#: Set by proxies, gateways and delivery networks. A proxy that adds none cannot be noticed.
_PROXY_HEADERS = frozenset(
    {"cf-connecting-ip", "forwarded", "true-client-ip", "via", "x-client-ip", "x-real-ip"}
)
_PROXY_PREFIXES = ("x-envoy-", "x-forwarded-", "x-original-")


def refusal_of_proxy(headers: Iterable[str]) -> str | None:
    """Without tokens, a request must not come from another machine through a proxy on this one.
    Returns the reason of a refusal, or None."""
    names = [name.lower() for name in headers]
    if any(name in _PROXY_HEADERS or name.startswith(_PROXY_PREFIXES) for name in names):
        return "behind a proxy http.tokens must be set"
    return None


def refusal_of_browser(host: str | None, origin: str | None, fetch_site: str | None) -> str | None:
    """Without tokens, a web page must not act through the browser of a user of this machine.

    A foreign name that resolves to this machine (DNS rebinding) appears in the header Host, a
    request from another site in Origin or Sec-Fetch-Site. Returns the reason of a refusal, or None.
    """
    if not is_loopback(_host_of(f"//{host}").hostname or ""):
        return "without tokens only requests to localhost or 127.0.0.1 are accepted"
    if origin is not None and _host_of(origin).netloc != host:
        return "requests of other sites are not accepted"
    if fetch_site not in (None, "same-origin", "none"):
        return "requests of other sites are not accepted"
    return None


def _host_of(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as "["
        return urlsplit("")

"""Who may ask over HTTP: bearer tokens with roles, and this machine where there are none.

A token is written as `role:source` or `role@tenant:source`, where the source is one of

    env:NAME       the token stands in this variable of the environment
    file:PATH      it is the content of this file
    sha256:HEX     only its SHA-256 is known here

With no token at all, only callers on this machine are served, on a loopback address, and only
if a browser cannot have been talked into asking: see `refusal_of_browser`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from freehold.errors import BadSettings

#: A shorter one could be guessed.
TOKEN_CHARACTERS = 16
_TOKEN = re.compile(
    r"(?P<role>[a-z]+)(?:@(?P<tenant>[a-z][a-z0-9_]{0,30}))?"
    r":(?P<source>env|file|sha256):(?P<value>.+)"
)


class Role(IntEnum):
    """Each may do what those before it may."""

    ANYONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3


class Token(NamedTuple):
    """What is known of a token: never the token itself."""

    role: Role
    tenant: str | None
    digest: str


class Caller(NamedTuple):
    """Who asks. Without a tenant: of every tenant."""

    name: str
    role: Role
    tenant: str | None = None

    def may(self, role: Role, tenant: str | None) -> bool:
        return self.role >= role and self.tenant in (None, tenant)


LOCAL = Caller("local", Role.ADMIN)


def tokens_of(
    texts: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[Token, ...]:
    """Tokens as the settings name them, read from where they stand."""
    return tuple(_token(text, os.environ if environment is None else environment) for text in texts)


def _token(text: str, environment: Mapping[str, str]) -> Token:
    found = _TOKEN.fullmatch(text)
    if found is None or found["role"] not in ("viewer", "operator", "admin"):
        # The text itself may be a secret that somebody wrote here by mistake.
        raise BadSettings(
            "http.tokens: write each as role:env:NAME, role:file:PATH or role:sha256:HEX, with the "
            "role viewer, operator or admin; role@tenant for one tenant only"
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
            f"at least {TOKEN_CHARACTERS} letters and digits, chosen by chance"
        )
    return Token(role, tenant, _digest(secret))


def _secret(source: str, value: str, environment: Mapping[str, str]) -> str:
    if source == "env":
        return environment.get(value, "")
    try:
        return Path(value).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def shown_token(text: str) -> str:
    """As it may be shown: not even the digest, which a weak token could be guessed from."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return "…"
    return text if found["source"] != "sha256" else f"{text.partition(':')[0]}:sha256:…"


def caller_of(authorization: str | None, tokens: Sequence[Token]) -> Caller | None:
    """Whom the header `Authorization: Bearer …` speaks for; None: nobody that is known."""
    if not tokens:
        return LOCAL
    scheme, _, secret = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    asked, found = _digest(secret.strip()), None
    for token in tokens:  # all of them, so that the time tells nothing
        if hmac.compare_digest(asked, token.digest):
            found = token
    if found is None:
        return None
    tenant = f"@{found.tenant}" if found.tenant else ""
    return Caller(f"{found.role.name.lower()}{tenant}", found.role, found.tenant)


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
    """Nothing is served to other machines unless callers can be told apart."""
    if not tokens and not is_loopback(host):
        raise BadSettings(
            f"host {host} can be reached from other machines: set http.tokens first, or serve on "
            "127.0.0.1"
        )


def refusal_of_browser(host: str | None, origin: str | None, fetch_site: str | None) -> str | None:
    """Without tokens, a page from elsewhere must not act through the browser of somebody here.

    A name that is made to point at this machine (DNS rebinding) shows in the header Host, a
    request from another site in Origin or Sec-Fetch-Site. Answers why not, or None.
    """
    if not is_loopback(_host_of(f"//{host}").hostname or ""):
        return "without tokens only requests to localhost or 127.0.0.1 are answered"
    if origin is not None and _host_of(origin).netloc != host:
        return "requests of other sites are not answered"
    if fetch_site not in (None, "same-origin", "none"):
        return "requests of other sites are not answered"
    return None


def _host_of(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as "[", which is no address of anything
        return urlsplit("")

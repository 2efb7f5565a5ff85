"""Tokens and roles, and which requests are refused without tokens."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.errors import BadSettings
from freehold.http_auth import (
    LOCAL,
    Role,
    api_tokens,
    caller_of,
    check_address,
    local_token,
    refusal_of_browser,
    shown_token,
    tokens_of,
)

SECRET = "a-token-of-random-letters"


def test_a_token_is_read_from_its_source(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}-f\n")
    digest = hashlib.sha256(f"{SECRET}-s".encode()).hexdigest()
    tokens = tokens_of(
        ["viewer:env:TOKEN", f"operator@shop:file:{file}", f"admin:sha256:{digest}"],
        {"TOKEN": f"{SECRET}-e"},
    )
    viewer = caller_of(f"Bearer {SECRET}-e", tokens)
    operator = caller_of(f"bearer {SECRET}-f", tokens)
    admin = caller_of(f"Bearer {SECRET}-s", tokens)
    assert viewer is not None
    assert operator is not None
    assert admin is not None
    assert (viewer.name, viewer.role, viewer.tenant) == ("viewer", Role.VIEWER, None)
    assert (operator.name, operator.tenant) == ("operator@shop", "shop")
    assert admin.role is Role.ADMIN
    assert not any(SECRET in str(token) for token in tokens)


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {SECRET}", SECRET, "Bearer ü"]
)
def test_a_request_without_a_known_token_has_no_caller(header: str | None) -> None:
    assert caller_of(header, tokens_of(["admin:env:T"], {"T": SECRET})) is None


def test_with_local_access_every_local_caller_is_trusted() -> None:
    assert tokens_of(["local"]) == api_tokens(["local"]) == ()
    assert caller_of(None, ()) == LOCAL


def test_local_access_and_tokens_exclude_each_other() -> None:
    with pytest.raises(BadSettings, match="or only local"):
        tokens_of(["local", "admin:env:T"], {"T": SECRET})


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    return tmp_path / "freehold"


def test_without_tokens_one_is_made_in_a_private_file_and_kept(private: Path) -> None:
    file = local_token()
    secret = file.read_text().strip()
    assert [path.name for path in private.iterdir()] == [file.name]
    assert (len(secret), file.stat().st_mode & 0o777) == (43, 0o600)
    assert local_token().read_text().strip() == secret
    caller = caller_of(f"Bearer {secret}", api_tokens([]))
    assert caller is not None
    assert (caller.role, caller.tenant) == (Role.ADMIN, None)
    assert caller_of(None, api_tokens([])) is None


def test_processes_that_start_at_once_use_the_same_token(private: Path) -> None:
    program = "from freehold.http_auth import local_token; print(local_token().read_text())"
    starts = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {each.communicate(timeout=120)[0] for each in starts}
    assert printed == {f"{(private / 'api-token').read_text()}\n"}


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_token_file_that_others_can_read_is_refused(private: Path, mode: int) -> None:
    local_token().chmod(mode)
    with pytest.raises(BadSettings, match="remove it"):
        api_tokens([])


def test_a_role_includes_the_roles_below_it_and_only_for_its_tenant() -> None:
    (token,) = tokens_of(["operator@shop:env:T"], {"T": SECRET})
    caller = caller_of(f"Bearer {SECRET}", [token])
    assert caller is not None
    assert caller.may(Role.VIEWER, "shop")
    assert caller.may(Role.OPERATOR, "shop")
    assert not caller.may(Role.ADMIN, "shop")
    assert not caller.may(Role.VIEWER, "other")
    assert not caller.may(Role.VIEWER, None)


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "root:env:T",
        "viewer:T",
        "viewer:plain:secret",
        "viewer:sha256:123",
        "viewer:env:MISSING",
        "viewer:env:SHORT",
        "viewer:file:/nowhere/at/all",
        "anyone:env:T",
    ],
)
def test_an_invalid_token_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(BadSettings, match=r"http\.tokens") as refused:
        tokens_of([text], {"T": SECRET, "SHORT": "hunter2"})
    assert SECRET not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_token_is_shown_without_its_digest() -> None:
    assert shown_token(f"viewer:sha256:{'a' * 64}") == "viewer:sha256:…"
    assert shown_token("viewer:env:TOKEN") == "viewer:env:TOKEN"
    assert shown_token("local") == "local"
    assert shown_token(SECRET) == "…"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_this_machine_needs_no_token(host: str) -> None:
    check_address(host, ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_other_addresses_need_a_token(host: str) -> None:
    with pytest.raises(BadSettings, match=r"set http\.tokens first"):
        check_address(host, ())
    check_address(host, tokens_of(["viewer:env:T"], {"T": SECRET}))


@pytest.mark.parametrize(
    ("host", "origin", "fetch_site"),
    [
        (None, None, None),
        ("evil.example:8787", None, None),
        ("127.0.0.1.evil.example", None, None),
        ("localhost:8787", "http://evil.example", None),
        ("localhost:8787", "null", None),
        ("[", None, None),
        ("", None, None),
        ("localhost:8787", "http://[", None),
        ("localhost:8787", "http://localhost:9999", None),
        ("localhost:8787", None, "cross-site"),
        ("localhost:8787", None, "same-site"),
    ],
)
def test_a_request_of_a_foreign_web_page_is_refused(
    host: str | None, origin: str | None, fetch_site: str | None
) -> None:
    assert refusal_of_browser(host, origin, fetch_site)


@pytest.mark.parametrize("host", ["localhost:8787", "127.0.0.1", "[::1]:8787"])
def test_a_request_of_this_machine_is_accepted(host: str) -> None:
    assert refusal_of_browser(host, None, None) is None
    assert refusal_of_browser(host, f"http://{host}", "same-origin") is None

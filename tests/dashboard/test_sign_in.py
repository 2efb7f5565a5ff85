"""Sign-in and sign-out, forms of other sites, and what a session can and cannot do."""

from __future__ import annotations

import pytest

from freehold.clock import system_micros
from freehold.dashboard.sign_in_limit import TRIES_PER_MINUTE, SignInLimit
from freehold.dashboard.site import Site, dashboard_address
from freehold.http.problems import ApiError
from freehold.http_auth import is_sign_in_code, sign_in_code
from freehold.settings import load
from tests.dashboard.browser_client import HOST, BrowserClient, Visitor, text_of
from tests.http.api_client import TOKENS, settings_with

pytestmark = pytest.mark.requirement("N17")


def test_a_visitor_signs_in_and_gets_the_page_that_was_asked_for(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    asked = visitor.get("/jobs?state=failed")
    assert asked.headers["location"] == "/ui/login?next=%2Fjobs%3Fstate%3Dfailed"
    visitor.get(asked.headers["location"])
    response = visitor.post("/login", {"token": TOKENS["viewer"], "next": "/jobs?state=failed"})
    assert response.headers["location"] == "/ui/jobs?state=failed"
    assert visitor.get("/jobs?state=failed").status_code == 200


@pytest.mark.parametrize(
    "place", ["//evil.example/", "https://evil.example/", "/nowhere", "/\\evil", "/jobs\nx", ""]
)
def test_the_page_after_the_sign_in_is_one_of_ours(
    secured: BrowserClient, tokens: list[str], place: str
) -> None:
    for at in ("/ui", ""):
        secured.open(settings_with(secured.folder, *tokens), at=at)
        response = secured.visitor().sign_in(TOKENS["viewer"], next=place)
        assert (response.status_code, response.headers["location"]) == (303, f"{at}/")


def test_the_page_after_the_sign_in_has_its_whole_path(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    asked = visitor.get("/lanes/a%3Fb%23c%2525")
    assert asked.headers["location"] == "/ui/login?next=%2Flanes%2Fa%253Fb%2523c%252525"
    again = visitor.sign_in(TOKENS["viewer"], next="/lanes/a%3Fb%23c%2525")
    assert again.headers["location"] == "/ui/lanes/a%3Fb%23c%2525"


def test_a_wrong_token_opens_nothing(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    response = visitor.sign_in(TOKENS["admin"][:-1])
    assert response.status_code == 401
    assert "not known" in text_of(response.text)
    assert visitor.get("/jobs").status_code == 303


def test_the_name_of_a_visitor_is_in_the_audit(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    visitor.sign_in(TOKENS["operator"], name="ann")
    page = visitor.done("/queues/mail/pause", {"reason": "a look"})
    assert "paused by ann (operator): a look" in text_of(page)
    (entry,) = secured.app.operator.audit().entries
    assert (entry.by, entry.via, entry.reason) == ("ann (operator)", "dashboard", "a look")


def test_a_sign_out_ends_the_session(secured: BrowserClient) -> None:
    visitor = secured.visitor("viewer")
    cookies = dict(visitor.cookies)
    assert visitor.post("/logout").headers["location"] == "/ui/login"
    visitor.cookies = cookies
    assert visitor.get("/jobs").status_code == 303


def test_a_revoked_token_ends_its_sessions(secured: BrowserClient, tokens: list[str]) -> None:
    visitor, other = secured.visitor("operator"), secured.visitor("viewer")
    kept = [text for text in tokens if not text.startswith("operator")]
    secured.open(settings_with(secured.folder, *kept))
    assert visitor.get("/jobs").status_code == 303
    assert other.get("/jobs").status_code == 200


def test_the_store_has_no_cookie_and_no_token(secured: BrowserClient) -> None:
    visitor = secured.visitor("admin")
    (session,) = secured.app._client.store.web_sessions()
    stored = repr(session)
    assert not any(cookie in stored for cookie in visitor.cookies.values())
    assert TOKENS["admin"] not in stored


def test_a_link_from_another_site_opens_the_page_and_keeps_the_session(
    secured: BrowserClient,
) -> None:
    """Browsers send a cookie that is lax with it. A request without the cookie replaces none."""
    visitor = secured.visitor("viewer")
    for path in ("/jobs", "/login", "/login?code=1.a"):
        visitor.get(path, headers={"Cookie": "", "Sec-Fetch-Site": "cross-site"})
    link = visitor.get("/jobs", headers={"Sec-Fetch-Site": "cross-site"})
    assert link.status_code == 200


def test_cookies_are_lax_and_hidden_from_scripts(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    visitor.get("/login")
    plain = visitor.post("/login", {"token": TOKENS["viewer"]}).headers["set-cookie"]
    assert plain.startswith("freehold-8787=")
    assert all(word in plain for word in ("HttpOnly", "SameSite=lax", "Path=/"))
    behind_tls = visitor.get("/login", headers={"X-Forwarded-Proto": "https"})
    assert behind_tls.headers["set-cookie"].startswith("__Host-freehold-sign-in=")
    assert "Secure" in behind_tls.headers["set-cookie"]


def test_the_cookie_does_not_open_the_api(secured: BrowserClient, tokens: list[str]) -> None:
    settings = settings_with(secured.folder, *tokens)
    secured.pages, secured.at = Site(secured.app, settings), "/ui"
    visitor = secured.visitor("admin")
    assert visitor.get("/jobs").status_code == 200
    secured.at = ""
    assert visitor.get("/api/jobs").status_code == 401


def test_browsers_are_led_to_the_dashboard(secured: BrowserClient, tokens: list[str]) -> None:
    secured.pages = Site(secured.app, settings_with(secured.folder, *tokens))
    secured.at = ""
    html = {"Accept": "text/html,*/*"}
    for path in ("/", "/ui"):
        assert secured.visitor().get(path, headers=html).headers["location"] == "/ui/"
    assert secured.visitor().get("/").status_code == 404
    assert secured.visitor().get("/livez").json() == {"status": "alive"}


# -- forms of other sites --------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
    ],
    ids=str,
)
def test_a_form_of_another_site_changes_nothing(
    secured: BrowserClient, headers: dict[str, str]
) -> None:
    """Even with the token of the form."""
    visitor = secured.visitor("admin")
    assert visitor.post("/queues/mail/pause", headers=headers).status_code == 403
    assert secured.app.operator.queues() == []
    same = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"}
    assert visitor.post("/queues/mail/pause", headers=same).status_code == 303


@pytest.mark.parametrize("token", ["", "0" * 64, "another visitor's"])
@pytest.mark.parametrize("local", [True, False])
def test_a_form_without_its_token_changes_nothing(
    secured: BrowserClient, token: str, local: bool
) -> None:
    """With local access as well, where no session exists."""
    if token == "another visitor's":
        token = secured.visitor("admin").form_token()
    role = "admin"
    if local:
        secured.open(settings_with(secured.folder))
    visitor = secured.visitor(None if local else role)
    visitor.get("/help")
    response = visitor.request("POST", "/queues/mail/pause", data={"form_token": token})
    assert response.status_code == 403
    assert "out of date" in text_of(response.text)
    assert secured.app.operator.queues() == []


def test_a_form_must_be_a_form(secured: BrowserClient) -> None:
    visitor = secured.visitor("admin")
    assert visitor.request("POST", "/queues/mail/pause", json={}).status_code == 415
    fields = {"form_token": visitor.form_token(), "wrong": "x"}
    assert visitor.request("POST", "/queues/mail/pause", data=fields).status_code == 422
    many = "&".join(f"a{n}=1" for n in range(500)).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    response = visitor.request("POST", "/queues/mail/pause", content=many, headers=kind)
    assert response.status_code == 400


# -- the printed address ---------------------------------------------------------------------


def test_the_printed_address_signs_in(
    sqlite_board: BrowserClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sqlite_board.folder))
    sqlite_board.folder.chmod(0o700)
    settings = load(environment={}, folder=sqlite_board.folder)
    sqlite_board.open(settings)
    address = dashboard_address("http://x", settings).removeprefix("http://x")
    token = (sqlite_board.folder / "freehold" / "api-token").read_text().strip()
    assert token not in address
    visitor = sqlite_board.visitor()
    assert visitor.get(address).headers["location"] == "/ui/"
    assert "role <b>admin</b>" in visitor.page("/")
    assert visitor.get(address).headers["location"] == "/ui/"  # which has a session
    assert _is_refused(sqlite_board.visitor(), address)  # a code is accepted once
    last = "0" if address[-1] != "0" else "1"
    assert _is_refused(sqlite_board.visitor(), address[:-1] + last)


def _is_refused(visitor: Visitor, address: str) -> bool:
    page = visitor.get(address)
    return "no longer valid" in text_of(page.text) and visitor.get("/jobs").status_code == 303


def test_a_code_of_an_address_ends() -> None:
    now = system_micros() // 1_000_000
    code = sign_in_code("secret", now + 60)
    assert is_sign_in_code(code, "secret", now)
    assert not is_sign_in_code(code, "secret", now + 60)
    assert not is_sign_in_code(code, "another", now)
    later = f"{now + 3600}.{code.partition('.')[2]}"
    assert not is_sign_in_code(later, "secret", now)
    for wrong in ("", ".", "x.y", "1" * 40 + ".a", "١.a"):
        assert not is_sign_in_code(wrong, "secret", now)


# -- the limit of failures -------------------------------------------------------------------


def test_sign_ins_that_fail_are_limited_by_address() -> None:
    time = [0.0]
    limit = SignInLimit(lambda: time[0])
    for _ in range(TRIES_PER_MINUTE):
        limit.check("a")
        limit.add_failure("a")
    with pytest.raises(ApiError, match="try again in"):
        limit.check("a")
    limit.check("b")
    time[0] = 60.0
    limit.check("a")


def test_a_visitor_that_guesses_is_stopped(secured: BrowserClient) -> None:
    visitor = secured.visitor()
    statuses = [visitor.sign_in("guess").status_code for _ in range(TRIES_PER_MINUTE + 1)]
    assert statuses == [401] * TRIES_PER_MINUTE + [429]
    assert visitor.sign_in(TOKENS["admin"]).status_code == 303  # others may have the address


def test_addresses_with_a_wrong_code_block_no_sign_in(secured: BrowserClient) -> None:
    """A page of another site can contain them as images."""
    visitor = secured.visitor()
    for _ in range(TRIES_PER_MINUTE + 1):
        assert visitor.get("/login?code=1.a").status_code == 200
    assert visitor.sign_in("guess").status_code == 401
    assert visitor.sign_in(TOKENS["viewer"]).status_code == 303


@pytest.mark.parametrize("host", ["[", "[:80", ":", "x:١"])
def test_a_host_that_is_none_is_no_error_of_the_service(secured: BrowserClient, host: str) -> None:
    headers = {"Host": host.encode("utf-8")}
    for path in ("/login", "/jobs"):
        assert secured.visitor().get(path, headers=headers).status_code < 500
    secured.open(settings_with(secured.folder))
    assert secured.visitor().get("/jobs", headers=headers).status_code == 403

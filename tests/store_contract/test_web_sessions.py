"""Sessions of the dashboard: they end by a sign-out, with time, and with their token."""

from __future__ import annotations

import pytest

from freehold.errors import StoreFull
from freehold.store.statements import Rows, Session, StatementGroup
from freehold.store.store import Store
from freehold.store.types import IDLE_SECONDS, LIFETIME_SECONDS
from freehold.store.verbs.web_sessions import TOUCH_SECONDS
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N14")


def is_open(store: StoreUnderTest, digest: str) -> bool:
    return store.store.use_web_session(digest) is not None


def test_a_session_is_found_by_its_digest(store: StoreUnderTest) -> None:
    store.store.open_web_session("cookie", "token", "ann")
    found = store.store.use_web_session("cookie")
    assert found is not None
    assert (found.token_digest, found.author, found.created_at) == ("token", "ann", store.now())
    assert not is_open(store, "another")


def test_a_session_that_is_not_used_ends(store: StoreUnderTest) -> None:
    store.store.open_web_session("cookie", "token")
    store.advance(IDLE_SECONDS - 1)
    assert is_open(store, "cookie")  # which counts as a use
    store.advance(IDLE_SECONDS - 1)
    assert is_open(store, "cookie")
    store.advance(IDLE_SECONDS)
    assert not is_open(store, "cookie")


def test_a_session_in_use_ends_after_its_lifetime(store: StoreUnderTest) -> None:
    store.store.open_web_session("cookie", "token")
    for _ in range(int(LIFETIME_SECONDS // 3600) - 1):
        store.advance(3600)
        assert is_open(store, "cookie")
    store.advance(3600)
    assert not is_open(store, "cookie")


def test_the_use_of_a_session_is_not_written_by_every_request(store: StoreUnderTest) -> None:
    store.store.open_web_session("cookie", "token")
    opened_at = store.now()
    store.advance(TOUCH_SECONDS)
    assert is_open(store, "cookie")
    assert [each.seen_at for each in store.store.web_sessions()] == [opened_at]
    store.advance(1)
    assert is_open(store, "cookie")
    assert [each.seen_at for each in store.store.web_sessions()] == [store.now()]


class FullSession:
    """Of a store that accepts no writes."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def execute(self, group: StatementGroup) -> list[Rows]:
        if group.writes:
            raise StoreFull("no space is left")
        return self._session.execute(group)


def test_a_full_store_admits_visitors(store: StoreUnderTest) -> None:
    store.store.open_web_session("cookie", "token", "ann")
    store.advance(TOUCH_SECONDS + 1)
    found = Store(FullSession(store.database.session())).use_web_session("cookie")
    assert found is not None
    assert found.author == "ann"


def test_a_sign_out_ends_one_session_and_a_revoked_token_all_of_its_own(
    store: StoreUnderTest,
) -> None:
    for cookie, token in (("a", "ann"), ("b", "ann"), ("c", "ann"), ("d", "bob")):
        store.store.open_web_session(cookie, token)
    store.store.close_web_sessions("a")
    assert [is_open(store, each) for each in "abcd"] == [False, True, True, True]
    store.store.close_web_sessions(token_digest="ann")
    assert [is_open(store, each) for each in "abcd"] == [False, False, False, True]


def test_a_sign_in_deletes_sessions_that_have_ended(store: StoreUnderTest) -> None:
    store.store.open_web_session("old", "token")
    store.advance(LIFETIME_SECONDS)
    store.store.open_web_session("new", "token")
    assert [each.digest for each in store.store.web_sessions()] == ["new"]
    assert len(store.everything()["web_session"]) == 1

"""Names that pass the whitelists are safe to store, show, log and quote."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freehold.errors import BadName
from freehold.model.names import KEY_LENGTH_LIMIT, check_key, check_name, check_schema
from freehold.model.tenant import check_tenant

BAD: list[object] = [
    "",
    " ",
    "a b",
    "a;drop table job",
    'a"b',
    "a'b",
    "a\\b",
    "a\nb",
    "a\x00b",
    "a\n",
    "ä",
    "-a",
    ".a",
    ":a",
    "a/b",
    "a%b",
    "{a}",
    "$1",
    "a" * 101,
    "\ud800",
    "\u202e",
    None,
    7,
    b"a",
    ["a"],
]
BAD_SCHEMAS: list[object] = [
    *BAD,
    "A",
    "1a",
    "a-b",
    "a.b",
    "a:b",
    "pg_a",
    "pg_",
    "a" * 49,
    "información",
]
BAD_KEYS: list[object] = [
    "",
    "a\x00b",
    "a\nb",
    "a\tb",
    "\x1b[31m",
    "\x7f",
    "\ud800",
    "\u202e",
    "\u2028",
    "\ufeff",
    "a" * (KEY_LENGTH_LIMIT + 1),
    None,
    7,
    b"a",
]
texts = st.text() | st.text("aZ09_.:-\"'; \\\n\x00é", max_size=8)


@given(text=texts)
@example("a\n")
def test_a_name_that_passes_needs_no_quoting(text: str) -> None:
    try:
        assert check_name("queue", text) is text
    except BadName:
        return
    assert re.fullmatch("[a-zA-Z0-9_.:-]+", text)
    assert text.isascii()
    assert 1 <= len(text) <= 100
    assert text[0] not in ".:-"


@given(text=texts | st.from_regex(r"[a-z_][a-z0-9_]{0,60}", fullmatch=True))
@example("pg_catalog")
def test_a_schema_that_passes_is_an_identifier_of_postgresql(text: str) -> None:
    try:
        assert check_schema(text) is text
    except BadName:
        return
    assert text.isidentifier()
    assert text == text.lower()
    # PostgreSQL truncates names at 63 bytes, and reserves pg_.
    assert len(text.encode()) <= 48
    assert not text.startswith("pg_")


@given(text=texts)
def test_a_key_that_passes_can_be_stored_and_shown(text: str) -> None:
    try:
        assert check_key("target", text) is text
    except BadName:
        return
    assert text.encode()
    assert text.isprintable()
    assert 1 <= len(text) <= KEY_LENGTH_LIMIT


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_bad_names_are_refused_and_shown(name: object) -> None:
    with pytest.raises(BadName) as refusal:
        check_name("queue", name)
    assert str(refusal.value).startswith(f"queue {repr(name)[:57]}")
    assert "use 1 to 100 letters, digits" in str(refusal.value)


@pytest.mark.parametrize("name", BAD_SCHEMAS, ids=ascii)
def test_bad_schemas_are_refused_and_shown(name: object) -> None:
    with pytest.raises(BadName) as refusal:
        check_schema(name)
    assert str(refusal.value).startswith(f"schema {repr(name)[:57]}")
    assert "use 1 to 48 lower-case letters" in str(refusal.value)


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_bad_keys_are_refused_and_shown(key: object) -> None:
    with pytest.raises(BadName) as refusal:
        check_key("unique_key", key)
    assert str(refusal.value).startswith(f"unique_key {repr(key)[:57]}")
    assert f"give 1 to {KEY_LENGTH_LIMIT} printable characters" in str(refusal.value)


@given(name=st.text(min_size=101))
def test_the_message_of_a_refusal_is_short_for_any_name(name: str) -> None:
    with pytest.raises(BadName) as refusal:
        check_name("task", name)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("name", ["a", "_", "0", "Mail.send:v2-x", "a" * 100])
def test_ordinary_names_pass(name: str) -> None:
    assert check_name("task", name) == name


@pytest.mark.parametrize("key", ["account 42", "Zürich/Straße", "a'b\"c;--", "注文", "a" * 200])
def test_keys_may_be_any_printable_text(key: str) -> None:
    assert check_key("target", key) == key


@pytest.mark.parametrize("name", ["select", "user", "left", "information_schema"])
def test_a_schema_cannot_have_a_name_that_postgresql_reserves(name: str) -> None:
    with pytest.raises(BadName, match=f"schema '{name}' is reserved by PostgreSQL"):
        check_schema(name)
    assert check_schema(f"{name}_jobs") == f"{name}_jobs"


def test_a_tenant_cannot_be_called_all() -> None:
    with pytest.raises(BadName, match="it stands for all tenants"):
        check_tenant("all")

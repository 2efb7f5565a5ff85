"""Which values are masked where people see them."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.model.private_names import (
    MASKED,
    TOO_DEEP,
    arguments_text,
    is_private_name,
    masked,
    value_text,
)

pytestmark = pytest.mark.requirement("N17")


@pytest.mark.parametrize(
    "name",
    [
        *("password", "passwords", "password_old", "PASSWORD", "user-password", "pwd", "passwd"),
        *("api-key", "api_key", "apiKey", "X-Api-Key", "APIKEY", "access_key", "accessKeyId"),
        *("privateKey", "private_key", "private-key-pem", "client_secret", "refreshToken"),
        *("Authorization", "Set-Cookie", "credentials", "db_pass", "dbPass", "PIN"),
    ],
)
def test_private_names(name: str) -> None:
    assert is_private_name(name)
    assert masked({"a": [{name: "x"}]}) == {"a": [{name: MASKED}]}


@pytest.mark.parametrize("name", ["", "name", "key", "compass", "passenger", "api", "spinner"])
def test_other_names(name: str) -> None:
    assert not is_private_name(name)


def test_a_value_of_any_depth_is_shown() -> None:
    value: Any = {"password": "x1"}
    for _ in range(100_000):
        value = [value]
    text = value_text(value)
    assert TOO_DEEP in text
    assert "x1" not in text


def test_arguments_that_cannot_be_read_are_not_shown() -> None:
    assert "x1" not in arguments_text('{"password": "x1"')
    assert str(2**63) in arguments_text('{"number": 9223372036854775808}')

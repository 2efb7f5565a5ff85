"""Signals over HTTP."""

from __future__ import annotations

import pytest

from tests.http.api_client import ApiClient, problem


def test_a_signal_is_sent_once_and_listed_without_its_value(client: ApiClient) -> None:
    body = {"name": "paid:7", "value": {"cents": 5}, "by": "ann", "keep_seconds": 60}
    first = client.post("/api/signals", body)
    assert (first.status_code, first.json()) == (201, {"name": "paid:7", "sent": True})
    again = client.post("/api/signals", {"name": "paid:7"})
    assert (again.status_code, again.json()["sent"]) == (200, False)
    client.post("/api/signals", {"name": "shipped"})
    page = client.get_json("/api/signals?limit=1")
    (signal,) = page["signals"]
    assert (signal["name"], signal["by"], signal["delivered"]) == ("paid:7", "ann (local)", False)
    assert "cents" not in str(page)
    (second,) = client.get_json(f"/api/signals?after={page['next']}")["signals"]
    assert second["name"] == "shipped"


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        ({}, "bad-input"),
        ({"name": ""}, "bad-input"),
        ({"name": "x" * 201}, "bad-input"),
        ({"name": "a\nb"}, "bad-name"),
        ({"name": "a", "keep_seconds": 0}, "bad-input"),
        ({"name": "a", "keep_seconds": 10**10}, "bad-input"),
        ({"name": "a", "more": 1}, "bad-input"),
        ({"name": "a", "by": ""}, "bad-input"),
    ],
)
def test_a_wrong_signal_is_refused(client: ApiClient, body: dict[str, object], slug: str) -> None:
    problem(client.post("/api/signals", body), 422, slug)
    assert client.get_json("/api/signals")["signals"] == []

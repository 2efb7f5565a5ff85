"""The description is the API: schemathesis asks all that it describes, and more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from freehold.http.asgi import TABLE
from freehold.http.openapi import description
from freehold.http.request_limits import RequestLimits
from freehold.http_auth import Role
from freehold.model.operator_actions import OperatorVerb
from freehold.tasks import Registry
from tests.http.desk import Desk, bearer, settings_with
from tests.sizes import sized

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
EXAMPLES = sized("REQUESTS", short=12, long=250)


def test_every_route_is_described() -> None:
    paths = description(TABLE)["paths"]
    described = {f"{m.upper()} {at}" for at, methods in paths.items() for m in methods}
    assert described == {route.name for route in TABLE}


def test_every_operation_says_who_may_and_what_can_go_wrong() -> None:
    for route in TABLE:
        operation = description(TABLE)["paths"][route.at][route.method.lower()]
        assert operation["summary"], route.name
        responses = set(operation["responses"])
        assert {"500", "503"} <= responses
        if route.role is Role.ANYONE:
            assert operation["security"] == []
        else:
            assert operation["security"] == [{"token": []}]
            assert {"401", "403"} <= responses
            assert f"role {route.role.name.lower()}" in operation["description"]
        if route.body is not None:
            assert {"400", "413", "415", "422"} <= responses
        problems = [r for s, r in operation["responses"].items() if int(s) >= 400]
        assert all("application/problem+json" in each["content"] for each in problems)


def test_operations_have_names_of_their_own() -> None:
    paths = description(TABLE)["paths"]
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(set(names)) == len(names) == len(TABLE)


def test_the_description_refers_to_nothing_that_is_missing() -> None:
    document = description(TABLE)
    named = set(_references(document))
    assert named == {f"#/components/schemas/{n}" for n in document["components"]["schemas"]}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for each in value.values() for ref in _references(each)]
    if isinstance(value, list):
        return [ref for each in value for ref in _references(each)]
    return []


@pytest.mark.parametrize(
    ("desk", "mode"),
    [
        ("sqlite", GenerationMode.POSITIVE),
        ("postgres", GenerationMode.POSITIVE),
        ("sqlite", GenerationMode.NEGATIVE),  # what does not fit reaches no store
    ],
    indirect=["desk"],
)
def test_schemathesis_finds_nothing(desk: Desk, tokens: list[str], mode: GenerationMode) -> None:
    """No 5xx, no answer that is not described, nothing accepted that does not fit."""
    desk.open(settings_with(desk.folder, *tokens), RequestLimits(stream_seconds=0.0))
    desk.app.tasks = Registry()  # where no task is known, all names are
    _furnish(desk)
    schema = schemathesis.openapi.from_dict(description(TABLE))
    met: Counter[tuple[str, int]] = Counter()
    for route in TABLE:
        if mode is GenerationMode.POSITIVE or route.path or route.query or route.body:
            _examine(desk, schema[route.at][route.method], mode, met)
    statuses = {status for _, status in met}
    wanted = {200, 201, 404, 409} if mode is GenerationMode.POSITIVE else {422}
    assert wanted <= statuses, met  # or it was asked nothing of interest
    assert max(statuses) < 500


def _furnish(desk: Desk) -> None:
    """Jobs in several states, with small ids that are easily guessed; and a tenant."""
    desk.app.tenants.create("a")
    for number in range(6):
        body = {"task": "greet", "args": {"name": "x"}, "target": str(number)}
        job_id = desk.post("/api/jobs", body, headers=bearer("admin")).json()["id"]
        if number % 2:
            desk.act(OperatorVerb.PAUSE, job_id)


def _examine(
    desk: Desk, operation: Any, mode: GenerationMode, met: Counter[tuple[str, int]]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    @given(case=operation.as_strategy(generation_mode=mode, headers=bearer("admin")))
    def ask(case: Any) -> None:
        answer = _send(desk, case)
        met[operation.label, answer.status_code] += 1
        case.validate_response(answer, checks=CHECKS)

    ask()


def _send(desk: Desk, case: Any) -> httpx.Response:
    said = case.as_transport_kwargs(base_url="http://localhost")
    taken = ("method", "url", "headers", "params", "data", "json", "files")
    request = requests.Request(**{name: said[name] for name in taken if name in said}).prepare()
    method, url, content = request.method or "", request.url or "", request.body or b""
    return desk.ask(method, url, headers=dict(request.headers), content=content)

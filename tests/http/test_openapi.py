"""The OpenAPI description and the API agree: schemathesis sends generated requests."""

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
from tests.http.api_client import ApiClient, bearer, settings_with
from tests.sizes import sized

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
EXAMPLES = sized("REQUESTS", short=4, long=250)


def test_every_route_is_described() -> None:
    paths = description(TABLE)["paths"]
    described = {f"{m.upper()} {at}" for at, methods in paths.items() for m in methods}
    assert described == {route.name for route in TABLE}


def test_every_operation_describes_its_role_and_its_errors() -> None:
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


def test_operations_have_unique_names() -> None:
    paths = description(TABLE)["paths"]
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(set(names)) == len(names) == len(TABLE)


def test_every_reference_of_the_description_exists() -> None:
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
    ("client", "mode"),
    [
        ("sqlite", GenerationMode.POSITIVE),
        ("postgres", GenerationMode.POSITIVE),
        ("sqlite", GenerationMode.NEGATIVE),  # invalid requests reach no store
    ],
    indirect=["client"],
)
def test_schemathesis_finds_nothing(
    client: ApiClient, tokens: list[str], mode: GenerationMode
) -> None:
    """No 5xx, no response that is not described, no invalid request accepted."""
    client.open(settings_with(client.folder, *tokens), RequestLimits(stream_seconds=0.0))
    client.app.tasks = Registry()  # without known tasks, every name is accepted
    _furnish(client)
    schema = schemathesis.openapi.from_dict(description(TABLE))
    met: Counter[tuple[str, int]] = Counter()
    for route in TABLE:
        if mode is GenerationMode.POSITIVE or route.path or route.query or route.body:
            _examine(client, schema[route.at][route.method], mode, met)
    statuses = {status for _, status in met}
    wanted = {200, 201, 404, 409} if mode is GenerationMode.POSITIVE else {422}
    assert wanted <= statuses, met  # or the generated requests were too uniform
    assert max(statuses) < 500


def _furnish(client: ApiClient) -> None:
    """Jobs in several states, with small ids that generated requests are likely to use; and a
    tenant."""
    client.app.tenants.create("a")
    for number in range(6):
        body = {"task": "greet", "args": {"name": "x"}, "target": str(number)}
        job_id = client.post("/api/jobs", body, headers=bearer("admin")).json()["id"]
        if number % 2:
            client.act(OperatorVerb.PAUSE, job_id)


def _examine(
    client: ApiClient, operation: Any, mode: GenerationMode, met: Counter[tuple[str, int]]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    @given(case=operation.as_strategy(generation_mode=mode, headers=bearer("admin")))
    def request(case: Any) -> None:
        response = _send(client, case)
        met[operation.label, response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    request()


def _send(client: ApiClient, case: Any) -> httpx.Response:
    kwargs = case.as_transport_kwargs(base_url="http://localhost")
    names = ("method", "url", "headers", "params", "data", "json", "files")
    request = requests.Request(**{name: kwargs[name] for name in names if name in kwargs}).prepare()
    method, url, content = request.method or "", request.url or "", request.body or b""
    return client.request(method, url, headers=dict(request.headers), content=content)

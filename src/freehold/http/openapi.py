"""The description of the API, made from the route table."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import msgspec
from starlette.responses import Response

from freehold.http.problems import MEDIA_TYPE, Problem
from freehold.http.request import ApiRequest
from freehold.http.routes import JSON, Route, Routes
from freehold.http_auth import Role

routes = Routes()
_REF = "#/components/schemas/{name}"
_PROBLEMS = {
    400: "The body is not JSON",
    401: "No token, or an unknown one",
    403: "The token's role or tenant does not allow it",
    404: "There is no such job or tenant",
    408: "The body did not arrive in time",
    409: "The state of the job or tenant does not allow it, or its key or name is taken",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "An invalid value, or arguments that do not fit the task",
    500: "A bug",
    503: "The database is unavailable, slow, read-only or full, or there are too many streams",
}


@routes.get("/api/openapi.json", Role.VIEWER, responses={200: dict[str, Any]})
async def describe(request: ApiRequest) -> Response:
    """This description."""
    document = {
        **description(request.service.routes),
        "servers": [{"url": request.http.scope.get("root_path") or "/"}],
    }
    return Response(msgspec.json.encode(document), media_type=JSON)


@cache
def description(table: tuple[Route, ...]) -> dict[str, Any]:
    types = _types(table)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.at, {})[route.method.lower()] = _operation(route, schema_of)
    parameters = {each for route in table for each in (route.path, route.query) if each is not None}
    for each in parameters:  # `_parameters` describes them
        del components[each.__name__]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Freehold",
            "version": "1",
            "description": "Jobs, queues and events of a durable job queue.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(table: tuple[Route, ...]) -> list[Any]:
    found: list[Any] = [Problem]
    for route in table:
        found += [each for each in (route.path, route.query, route.body) if each is not None]
        found += route.responses.values()
    return [each for n, each in enumerate(found) if each not in found[:n]]


def _operation(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    doc = inspect.cleandoc(route.handler.__doc__ or "").replace("\n", " ")
    first, _, rest = doc.partition(". ")
    needs = "" if route.role is Role.ANYONE else f"Needs the role {route.role.name.lower()}."
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": first.rstrip("."),
        "description": f"{rest} {needs}".strip(),
        "security": [] if route.role is Role.ANYONE else [{"token": []}],
        "responses": _responses(route, schema_of),
    }
    parameters = [*_parameters(route.path, "path"), *_parameters(route.query, "query")]
    parameters += [
        {"name": name, "in": "header", "required": False, "schema": schema}
        for name, schema in route.headers.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {JSON: {"schema": schema_of[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    responses = {
        str(status): {
            "description": "Created" if status == 201 else "Done",
            "content": {route.media: {"schema": schema_of[kind]}},
        }
        for status, kind in route.responses.items()
    }
    for status in problems_of(route):
        content = {MEDIA_TYPE: {"schema": schema_of[Problem]}}
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
    return responses


def problems_of(route: Route) -> list[int]:
    """The error statuses of a route, which follow from what it takes."""
    found = {422, 500, 503, *route.problems}
    if route.role is not Role.ANYONE:
        found |= {401, 403}
    if route.path is not None:
        found.add(404)
    if route.body is not None:
        found |= {400, 408, 413, 415}
    return sorted(found)


def _parameters(kind: type | None, location: str) -> list[dict[str, Any]]:
    if kind is None:
        return []
    (schema,), components = msgspec.json.schema_components([kind], ref_template=_REF)
    own = components[schema["$ref"].rpartition("/")[2]]
    required = own.get("required", ())
    return [
        {
            "name": name,
            "in": location,
            "required": name in required,
            "schema": _resolved(field, components),
        }
        for name, field in own["properties"].items()
    ]


def _resolved(schema: Any, components: dict[str, Any]) -> Any:
    """The schema without references, so that a parameter contains its own limits."""
    if isinstance(schema, list):
        return [_resolved(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return components[re.sub(".*/", "", schema["$ref"])]
    return {name: _resolved(value, components) for name, value in schema.items()}

"""The requests of the HTTP API, from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from freehold.http.asgi import TABLE
from freehold.http.openapi import description
from scripts.site.markdown import page, table

INTRO = """Every request, from the OpenAPI document that a running service returns at `/api/openapi.json`. [The HTTP
API](../http.md) has examples, tokens and limits. Values in the column *body* that need not be given end with `?`."""


def http_page() -> str:
    document = description(TABLE)
    by_topic: dict[str, list[list[str]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            row = _row(path, method, operation, document)
            by_topic.setdefault(_topic(path), []).append(row)
    parts = [
        f"## {topic}\n\n" + table(["request", "meaning", "query", "body", "role"], rows)
        for topic, rows in by_topic.items()
    ]
    return page("HTTP requests", INTRO, *parts, _problems(document))


def _topic(path: str) -> str:
    parts = [part for part in path.split("/") if part and not part.startswith("{")]
    name = parts[1] if parts[0] == "api" else parts[0]
    of_the_service = ("livez", "readyz", "metrics", "openapi.json")
    return "Service" if name in of_the_service else name.replace("-", " ").capitalize()


def _row(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> list[str]:
    text = operation["description"]
    needs = text.rpartition("Needs the role ")[2].rstrip(".") if "Needs the role" in text else "–"
    return [
        f"`{method.upper()} {path}`",
        f"{operation['summary']}. {text.partition('Needs the role')[0]}".replace("``", "`"),
        ", ".join(f"`{p['name']}`" for p in operation.get("parameters", ()) if p["in"] == "query"),
        _body(operation, document),
        needs,
    ]


def _body(operation: dict[str, Any], document: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return ""
    (content,) = operation["requestBody"]["content"].values()
    schema = content["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = set(schema.get("required", ()))
    names = schema.get("properties", {})
    return ", ".join(f"`{name}{'' if name in required else '?'}`" for name in names)


def _problems(document: dict[str, Any]) -> str:
    found = {
        status: response["description"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if int(status) >= 400
    }
    rows = [[status, found[status]] for status in sorted(found)]
    return (
        "## Problems\n\nErrors are `application/problem+json`; [errors](errors.md) has their types.\n\n"
        + table(["status", "meaning"], rows)
    )

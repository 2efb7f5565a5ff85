"""From a request to its response, the same for every route: authorize, decode, handle, encode."""

from __future__ import annotations

import asyncio
from typing import Any, get_origin

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from freehold.errors import (
    BadInput,
    OutcomeUnknown,
    SchemaMissing,
    StoreUnavailable,
    TenantNotFound,
)
from freehold.http.auth import authenticated, authorize, identified
from freehold.http.problems import ApiError, hidden_detail, of_api_error, of_error
from freehold.http.request import ApiRequest, ApiResponse, ApiService
from freehold.http.request_limits import RequestLimits
from freehold.http.routes import JSON, Route
from freehold.http_auth import Caller

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


async def dispatch(service: ApiService, route: Route, request: Request) -> Response:
    """Returns a response in every case, one that the OpenAPI description contains."""
    caller = None
    try:
        if service.identify is None:
            caller = authenticated(request, route.role, service.tokens)
        else:
            caller = await identified(request, route.role, service.identify)
        response = await _dispatch(service, route, request, caller)
    except ApiError as error:
        response = of_api_error(error)
    except ClientDisconnect:
        response = of_api_error(
            ApiError(400, "Bad request", "the request ended before its body did")
        )
    except Exception as error:
        response = _of_error(service, request, caller, error)
    service.access_log.add(request, caller, response.status_code)
    response.headers.update(_HEADERS)
    return response


async def _dispatch(
    service: ApiService, route: Route, request: Request, caller: Caller
) -> Response:
    authorize(request, caller, route.role, route.scope, service.tenant)
    api_request = ApiRequest(
        service,
        request,
        caller,
        converted(dict(request.path_params), route.path),
        converted(query_of(request, route.query), route.query),
        await _body(request, route.body, service.limits),
    )
    seconds = service.limits.request_seconds + getattr(api_request.query, "wait", 0.0)
    try:
        async with asyncio.timeout(seconds):
            found = await route.handler(api_request)
    except TimeoutError:
        raise _too_slow(route, seconds) from None
    except TenantNotFound:
        # The error suggests similar names, which this caller or this API must not show.
        if caller.tenant is not None:
            raise ApiError(403, "Forbidden", f"there is no tenant {caller.tenant}") from None
        if service.tenant is not None:
            raise SchemaMissing("the tenant of this API does not exist any more") from None
        raise
    if isinstance(found, Response):
        return found
    status, value = (found.status, found.value) if isinstance(found, ApiResponse) else (200, found)
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def _of_error(
    service: ApiService, request: Request, caller: Caller | None, error: Exception
) -> Response:
    is_of_tenant = service.tenant is not None or (caller is not None and caller.tenant is not None)
    detail = hidden_detail(error) if is_of_tenant else None
    if detail is not None:
        service.access_log.add_hidden_error(request, caller, error)
    return of_error(error, detail)


def _too_slow(route: Route, seconds: float) -> Exception:
    if route.method == "GET":
        return StoreUnavailable(f"no result within {seconds:g} s: try again")
    return OutcomeUnknown(
        f"no result within {seconds:g} s: it may have happened or not; check, and repeat an "
        "enqueue with its idempotency_key"
    )


def converted(values: dict[str, Any], kind: type | None) -> Any:
    """Converts the texts of a path or query to their types."""
    if kind is None:
        if values:
            raise BadInput(f"there is no parameter {', '.join(map(repr, values))}")
        return None
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(str(error).replace("`$.", "`")) from None


def query_of(request: Request, kind: type | None) -> dict[str, Any]:
    lists = (
        {each.name for each in msgspec.structs.fields(kind) if get_origin(each.type) is tuple}
        if kind is not None
        else set()
    )
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if name not in lists and len(values) > 1:
            raise BadInput(f"{name} was given {len(values)} times")
        found[name] = values if name in lists else values[0]
    return found


async def _body(request: Request, kind: type | None, limits: RequestLimits) -> Any:
    if kind is None:
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise ApiError(415, "Unsupported media type", f"send Content-Type: {JSON}")
    data = await read_body(request, limits)
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise BadInput(str(error).replace("`$.", "`")) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "Bad request", f"the body is not JSON: {error}") from None


async def read_body(request: Request, limits: RequestLimits) -> bytes:
    """Raises if the body is too large, or does not arrive in time."""
    try:
        async with asyncio.timeout(limits.request_seconds):
            return await _read(request, limits.body_bytes)
    except TimeoutError:
        detail = f"the body did not arrive within {limits.request_seconds:g} s; nothing was written"
        raise ApiError(408, "Request timeout", detail, {"Connection": "close"}) from None


async def _read(request: Request, limit_bytes: int) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > limit_bytes):
        raise _too_large(limit_bytes)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > limit_bytes:
            raise _too_large(limit_bytes)
    return bytes(data)


def _too_large(limit_bytes: int) -> ApiError:
    return ApiError(413, "Content too large", f"a body has at most {limit_bytes:,} bytes")

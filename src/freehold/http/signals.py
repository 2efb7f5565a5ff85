"""Signals: send one, list those that are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Routes
from freehold.http.schemas import SignalBody, SignalListQuery, value_or_none
from freehold.http_auth import Role
from freehold.model.signal import KEEP, SignalInfo

routes = Routes()


class SentBody(msgspec.Struct, frozen=True):
    """``sent`` is false if a signal of this name was sent before: its first value is kept."""

    name: str
    sent: bool


class SignalListBody(msgspec.Struct, frozen=True):
    """By name, without values. ``next`` is the ``after`` of the next page, null after the last."""

    now: datetime
    signals: list[SignalInfo]
    next: str | None


@routes.post(
    "/api/signals", Role.OPERATOR, body=SignalBody, responses={200: SentBody, 201: SentBody}
)
async def send_signal(request: ApiRequest) -> ApiResponse:
    """Send a signal to the jobs that wait for its name, now or later. 201: it is new; 200: one of
    this name was sent before, and its first value is kept."""
    body: SignalBody = request.body
    keep = KEEP if body.keep_seconds is None else body.keep_seconds
    sent = await request.app.asend_signal(body.name, body.value, by=request.by, keep=keep)
    return ApiResponse(201 if sent else 200, SentBody(body.name, sent))


@routes.get("/api/signals", Role.VIEWER, query=SignalListQuery, responses={200: SignalListBody})
async def list_signals(request: ApiRequest) -> SignalListBody:
    """List the signals that are kept, without their values."""
    query: SignalListQuery = request.query
    found = await request.operator.signals(value_or_none(query.after) or "", query.limit)
    more = found[-1].name if len(found) == query.limit else None
    return SignalListBody(await request.operator.now(), found, more)

"""The fields of forms that several pages have, with their limits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import PageRequest
from freehold.http.schemas import Reason, WeightValue
from freehold.model.limit import LIMIT_CEILING, Limit, rate_of


class ReasonForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change that only has a reason, which the audit keeps."""

    reason: Reason | None = None


class PauseForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pause: for so many seconds, or until it is resumed."""

    reason: Reason | None = None
    seconds: Annotated[int, Meta(ge=1, le=366 * 86400)] | None = None

    async def until(self, request: PageRequest) -> datetime | None:
        if self.seconds is None:
            return None
        return await request.operator.now() + timedelta(seconds=self.seconds)


class WeightForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    weight: WeightValue
    reason: Reason | None = None


class LimitForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An empty limit removes it."""

    max: Annotated[int, Meta(ge=0, le=LIMIT_CEILING)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    reason: Reason | None = None

    @property
    def limit(self) -> Limit:
        return Limit(self.max, None if self.rate is None else rate_of(self.rate))

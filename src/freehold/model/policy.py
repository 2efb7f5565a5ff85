"""What a job's outcomes lead to. The policy is stored with the job, so that any worker can apply it
when it recovers the job, without the task's code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import msgspec

from freehold.errors import BadSettings
from freehold.model.retry import DEFAULT_RETRY, Retry

OnLeaseExpired = Literal["retry", "fail"]
OnStop = Literal["auto", "cancel", "pause"]
OnDrain = Literal["auto", "requeue", "pause"]
LaneOnFailure = Literal["block", "skip"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "on_lease_expired": ("retry", "fail"),
    "on_cancel": ("auto", "cancel", "pause"),
    "on_drain": ("auto", "requeue", "pause"),
    "lane_on_failure": ("block", "skip"),
}
#: The fields of these stored names.
_FLAGS = {
    "secret_result": "secret_result",
    "notify_end": "notify_end",
    "steps": "has_steps",
    "in_group": "in_group",
}
#: Fields with the ids of flows and the numbers of nodes.
_NUMBERS = ("flow", "node", "callback_of")
_RETRY_FIELDS = ("base_seconds", "factor", "cap_seconds", "jitter")


@dataclass(frozen=True, slots=True)
class Policy:
    """``auto``: a job in a lane pauses, so that the order is kept; other jobs do not."""

    retry: Retry = DEFAULT_RETRY
    on_lease_expired: OnLeaseExpired = "retry"
    on_cancel: OnStop = "auto"
    on_drain: OnDrain = "auto"
    lane_on_failure: LaneOnFailure = "block"
    #: Names of arguments, and whether the result too, are hidden: see `model/secrets.py`.
    secret_args: tuple[str, ...] = ()
    secret_result: bool = False
    #: A caller waits for the end of the job: listeners are notified of it.
    notify_end: bool = False
    #: The job has stored steps. Set by the first of them, never by an enqueue.
    has_steps: bool = False
    #: The flow that the job is a member of, its node there, or the flow whose callback it is.
    flow: int | None = None
    node: int | None = None
    callback_of: int | None = None
    #: That flow is the group of a map, which can wait for the sources of its node.
    in_group: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.retry, Retry):
            raise BadSettings(f"retry={self.retry!r}: give a Retry, as in Retry(max_attempts=3)")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise BadSettings(
                    f"{name}={getattr(self, name)!r}: choose one of {', '.join(choices)}"
                )

    def pauses_on_cancel(self, has_lane: bool) -> bool:
        """A member of a flow is canceled, or its flow would not end."""
        keeps_order = has_lane and self.flow is None
        return self.on_cancel == "pause" or (self.on_cancel == "auto" and keeps_order)

    def pauses_on_drain(self, has_lane: bool) -> bool:
        return self.on_drain == "pause" or (self.on_drain == "auto" and has_lane)

    def blocks_lane(self, has_lane: bool) -> bool:
        return has_lane and self.lane_on_failure == "block"


DEFAULT_POLICY = Policy()


def pack(policy: Policy) -> dict[str, Any] | None:
    """The values that differ from the defaults; None if there are none.

    max_attempts is a column of the job; exception rules stay in the task's code.
    """
    packed: dict[str, Any] = {
        name: getattr(policy, name)
        for name in _CHOICES
        if getattr(policy, name) != getattr(DEFAULT_POLICY, name)
    }
    packed.update(
        (name, getattr(policy.retry, name))
        for name in _RETRY_FIELDS
        if getattr(policy.retry, name) != getattr(DEFAULT_RETRY, name)
    )
    if policy.secret_args:
        packed["secret_args"] = policy.secret_args
    if policy.secret_result:
        packed["secret_result"] = True
    if policy.notify_end:
        packed["notify_end"] = True
    if policy.in_group:
        packed["in_group"] = True
    packed.update(
        (name, getattr(policy, name)) for name in _NUMBERS if getattr(policy, name) is not None
    )
    return packed or None


@lru_cache(maxsize=256)  # jobs of one task have one text, and it is read at each end but success
def unpack(text: str | bytes | None) -> Policy:
    """The inverse of pack. Ignores unknown or invalid values: a newer client, or a person, may have
    written them, and recovery must not fail on such a job."""
    if not text:
        return DEFAULT_POLICY
    try:
        values = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        return DEFAULT_POLICY
    retry, policy = DEFAULT_RETRY, DEFAULT_POLICY
    for name, value in values.items():
        try:
            if name in _RETRY_FIELDS:
                retry = replace(retry, **{name: value})
            elif name in _CHOICES:
                policy = replace(policy, **{name: value})
            elif name == "secret_args":
                policy = replace(policy, secret_args=tuple(map(str, value)))
            elif name in _FLAGS:
                flag: dict[str, Any] = {_FLAGS[name]: bool(value)}
                policy = replace(policy, **flag)
            elif name in _NUMBERS and type(value) is int and value >= 0:
                number: dict[str, Any] = {name: value}
                policy = replace(policy, **number)
        except (BadSettings, TypeError):
            continue
    return replace(policy, retry=retry)

"""A policy is stored with its job and means the same in every process."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadSettings
from freehold.model.policy import DEFAULT_POLICY, Policy, pack, unpack
from freehold.model.retry import WAIT_LIMIT_SECONDS, Retry

retries = st.builds(
    Retry,
    base_seconds=st.floats(0.0, 1e9),
    factor=st.floats(1.0, 1e9),
    cap_seconds=st.floats(0.0, WAIT_LIMIT_SECONDS),
    jitter=st.floats(0.0, 1.0),
)
policies = st.builds(
    Policy,
    retry=st.just(Retry()) | retries,
    on_lease_expired=st.sampled_from(["retry", "fail"]),
    on_cancel=st.sampled_from(["auto", "cancel", "pause"]),
    on_drain=st.sampled_from(["auto", "requeue", "pause"]),
    lane_on_failure=st.sampled_from(["block", "skip"]),
)


def stored(packed: dict[str, Any] | None) -> str | None:
    return None if packed is None else msgspec.json.encode(packed).decode()


@pytest.mark.requirement("S2.6")
@given(policy=policies)
def test_a_policy_survives_a_round_trip(policy: Policy) -> None:
    assert unpack(stored(pack(policy))) == policy


@pytest.mark.requirement("S2.6")
def test_the_default_policy_is_not_stored() -> None:
    assert pack(DEFAULT_POLICY) is None
    assert unpack(None) is DEFAULT_POLICY


@given(policy=policies)
def test_only_differences_from_the_default_are_stored(policy: Policy) -> None:
    for name, value in (pack(policy) or {}).items():
        home = policy.retry if hasattr(policy.retry, name) else policy
        usual = DEFAULT_POLICY.retry if home is policy.retry else DEFAULT_POLICY
        assert getattr(home, name) == value != getattr(usual, name)


def test_rules_about_exceptions_and_attempts_are_not_stored() -> None:
    policy = Policy(retry=Retry(max_attempts=9, retry_on=(KeyError,), give_up_on=(ValueError,)))
    assert pack(policy) is None


def test_unknown_values_of_a_newer_client_are_ignored() -> None:
    assert unpack('{"on_cancel":"pause","on_full_moon":"howl"}') == Policy(on_cancel="pause")


@pytest.mark.parametrize("name", ["on_lease_expired", "on_cancel", "on_drain", "lane_on_failure"])
def test_unknown_choices_are_refused_with_the_possible_ones(name: str) -> None:
    with pytest.raises(BadSettings, match=f"{name}='maybe': choose one of [a-z]+, [a-z]+"):
        Policy(**{name: "maybe"})  # type: ignore[arg-type]


@pytest.mark.requirement("S4.6", "S4.11")
@pytest.mark.parametrize("choice", ["auto", "pause"])
@pytest.mark.parametrize("lane", [True, False])
def test_auto_pauses_jobs_in_a_lane(lane: bool, choice: Any) -> None:
    policy = Policy(on_cancel=choice, on_drain=choice)
    assert policy.pauses_on_cancel(lane) is (lane or choice == "pause")
    assert policy.pauses_on_drain(lane) is (lane or choice == "pause")


@pytest.mark.requirement("S4.6", "S4.11")
@pytest.mark.parametrize("lane", [True, False])
def test_by_policy_jobs_in_a_lane_do_not_pause(lane: bool) -> None:
    policy = Policy(on_cancel="cancel", on_drain="requeue")
    assert not policy.pauses_on_cancel(lane)
    assert not policy.pauses_on_drain(lane)


@pytest.mark.requirement("S4.7")
def test_only_a_lane_can_be_blocked_and_a_policy_can_prevent_it() -> None:
    assert Policy().blocks_lane(True)
    assert not Policy().blocks_lane(False)
    assert not Policy(lane_on_failure="skip").blocks_lane(True)


@pytest.mark.parametrize(
    "text",
    [
        '{"on_cancel":"explode"}',
        '{"jitter":7}',
        '{"base_seconds":"soon"}',
        '{"factor":null}',
        "[]",
        "not json",
    ],
)
def test_an_invalid_stored_policy_does_not_fail_recovery(text: str) -> None:
    assert unpack(text) == DEFAULT_POLICY

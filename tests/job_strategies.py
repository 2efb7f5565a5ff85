"""Hypothesis strategies with few names and many combinations, so that jobs collide often."""

from __future__ import annotations

from hypothesis import strategies as st

from freehold.model.job import ErrorInfo, NewJob, StopRequest
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.model.schedule import ScheduleDefinition
from freehold.model.timing import Every
from freehold.model.waiting import Waiting

OWNERS = ("w1", "w2", "w3")
QUEUES = ("a", "b")

owners = st.sampled_from(OWNERS)
queues = st.sampled_from(QUEUES)
chances = st.sampled_from([0.0, 0.5, 0.9])
reasons = st.sampled_from([None, "because"])
policies = st.sampled_from(
    [
        Policy(),
        Policy(),
        Policy(on_lease_expired="fail", on_drain="pause"),
        Policy(on_cancel="pause", lane_on_failure="skip"),
        Policy(retry=Retry(base_seconds=7.7, jitter=0.5), on_cancel="cancel", on_drain="requeue"),
    ]
)
new_jobs: st.SearchStrategy[NewJob] = st.builds(
    NewJob,
    task=st.sampled_from(["t", "u"]),
    queue=queues,
    priority=st.sampled_from([0, 0, 1, -1]),
    target=st.sampled_from([None, "x", "x", "y"]),
    delay_seconds=st.sampled_from([None, None, None, None, 0.0, 5.0]),
    unique_key=st.sampled_from([None] * 6 + ["k1", "k2"]),
    idempotency_key=st.sampled_from([None] * 6 + ["i1", "i2"]),
    idempotency_seconds=st.just(20.0),
    max_attempts=st.integers(1, 3),
    policy=policies,
    pending=st.sampled_from([False] * 8 + [True]),
    meta_json=st.sampled_from([None] * 3 + ['{"n":1}', '{"n":2,"é":null}']),
    start_by=st.sampled_from([None] * 5 + [7.0, 20.0]),
)
waiting_jobs: st.SearchStrategy[NewJob] = st.builds(
    NewJob,
    task=st.sampled_from(["t", "u"]),
    args=st.sampled_from([b"1", b"2"]),
    queue=queues,
    priority=st.sampled_from([0, 1]),
    target=st.sampled_from([None, None, "x"]),
    delay_seconds=st.sampled_from([None, None, 5.0]),
    max_attempts=st.integers(1, 3),
    policy=policies,
    tags=st.sampled_from([(), ("a",)]),
    meta_json=st.sampled_from([None, '{"n":1}']),
    waiting=st.sampled_from(
        [
            Waiting("unique/t/k"),
            Waiting("unique/t/k", ("args", "tags")),
            Waiting("unique/t/k", ("priority", "run_at")),
            Waiting("debounce/t/k", ("args", "meta", "run_at"), at_most_seconds=12.0),
            Waiting("throttle/t/k", ("args", "meta"), throttle_seconds=9.0),
        ]
    ),
)
successes = st.builds(
    Outcome, kind=st.just(OutcomeKind.SUCCESS), result=st.sampled_from([None, b'{"sum":3}'])
)
outcomes = successes | st.builds(
    Outcome,
    kind=st.sampled_from([kind for kind in OutcomeKind if kind is not OutcomeKind.SUCCESS]),
    error=st.sampled_from([None, ErrorInfo("ValueError", "no", "trace")]),
    reason=reasons,
    delay_seconds=st.sampled_from([None, None, 3.0]),
    retryable=st.sampled_from([True, True, False]),
    waits_for=st.sampled_from([None, "sleep/a", "signal/paid"]),
)
leases = st.sampled_from([10.0, 30.0])
known_tasks = st.sampled_from([None, frozenset({"t"}), frozenset({"u"})])
requests_seen = st.sampled_from([None, *StopRequest])
signal_names = st.sampled_from(["paid", "sent"])
schedules = st.builds(
    ScheduleDefinition,
    name=st.just("tick"),
    timing=st.sampled_from([Every(seconds=9), Every(seconds=20)]),
    job=st.sampled_from([NewJob(task="t", queue="a"), NewJob(task="u", queue="b", start_by=7.0)]),
    overlap=st.sampled_from(["skip", "allow", "queue"]),
    catch_up=st.sampled_from(["last", "all", "none"]),
)

"""The examples of durable handlers: a worker is killed in the middle, and another one goes on."""

from __future__ import annotations

import pytest

from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.worker.examples import Open
from tests.worker.fleet import TIMEOUT_SECONDS, eventually

pytestmark = [pytest.mark.requirement("N8", "N9", "N10"), pytest.mark.either_store]


def test_an_order_whose_worker_was_killed_is_charged_once_and_shipped(example: Open) -> None:
    shop = example("durable", "orders")
    job = shop.module.order.enqueue(7, 4200)
    shop.killed_at("pack order 7", PACK_SECONDS="600")
    shop.start(PACK_SECONDS="0")
    eventually(lambda: job.read().waits_for == "signal/shipped:7")
    assert shop.module.app.send_signal("shipped:7", shop.module.Parcel("X1"))
    assert job.result(TIMEOUT_SECONDS) == "X1, 350 g"
    assert shop.printed("charge") == ["charge order 7"]
    assert shop.printed("pack") == ["pack order 7"] * 2
    assert job.read().lost_attempts == 1
    # Its job is stored once and runs at least once: the killed worker can have printed it, too.
    (mail,) = shop.module.app.operator.jobs(JobFilter(task=shop.module.send_mail.name)).jobs
    eventually(lambda: shop.module.app.job(mail.id).read().state == State.SUCCEEDED)
    assert set(shop.printed("mail")) == {"mail for order 7: paid 4200"}


def test_an_agent_whose_worker_was_killed_repeats_only_the_call_that_ran(example: Open) -> None:
    agent = example("durable", "agent")
    job = agent.module.answer.enqueue("How long do all open tickets take?")
    agent.killed_at("tool read_ticket A-1", TOOL_SECONDS="600")
    agent.start(TOOL_SECONDS="0")
    assert job.result(TIMEOUT_SECONDS) == "16 days"
    reads = ["A-1", "A-1", "A-2", "A-3"]
    assert agent.printed("tool") == [
        "tool list_tickets open",
        *(f"tool read_ticket {name}" for name in reads),
        "tool add 3 5 8",
    ]
    assert agent.printed("model") == [f"model with {1 + 2 * n} messages" for n in range(6)]
    assert job.read().lost_attempts == 1

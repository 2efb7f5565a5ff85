"""Configured queues and limits are checked, and written into the store by a worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.errors import BadName, BadSettings
from freehold.model.limit import Limit, QueueRule, Rate
from freehold.settings import load
from tests.testing.virtual_app import VirtualApp


def loaded(folder: Path, text: str) -> tuple[dict[str, QueueRule], dict[str, Limit]]:
    (folder / "freehold.toml").write_text(text)
    settings = load(environment={}, folder=folder)
    return settings.queues, settings.limits


@pytest.mark.requirement("S0.10")
def test_queues_and_limits_are_read(tmp_path: Path) -> None:
    queues, limits = loaded(
        tmp_path,
        '[queues.mail]\nweight = 5\nmax = 7\nrate = "100/min"\n'
        '[queues."*"]\nmax = 50\n[limits."github:*"]\nmax = 2\n',
    )
    assert queues == {
        "mail": QueueRule(5.0, Limit(7, Rate(100, 60.0))),
        "*": QueueRule(None, Limit(50)),
    }
    assert limits == {"github:*": Limit(2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[queues.mail]\nwieght = 5\n",
            ":1: there is no wieght here; did you mean weight?",
        ),
        ("[queues.mail]\nweight = 0\n", "0.001 to 1000000"),
        ("[queues.mail]\nmax = 1.5\n", "give a whole number"),
        ("[queues.mail]\nrate = 5\n", "write it as a string"),
        ('[queues.mail]\nrate = "many"\n', "100/min"),
        ("[queues]\nmail = 5\n", "give a table"),
        ("[limits.smtp]\n", "give max, or rate, or both"),
        ("[limits.smtp]\nweight = 3\n", "there is no weight here"),
    ],
)
def test_bad_rules_are_refused_with_their_position(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadSettings) as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)


def test_a_bad_queue_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadName):
        loaded(tmp_path, '[queues."no such name!"]\nmax = 1\n')


def test_a_worker_writes_weights_and_limits_into_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "freehold.toml").write_text(
        "[queues.mail]\nweight = 5\nmax = 7\n[limits.smtp]\nmax = 2\n"
    )
    monkeypatch.chdir(tmp_path)
    app = Freehold()
    assert app.run_worker(until_idle=True) == 0
    (mail,) = app.operator.queues()
    assert (mail.weight, mail.limit) == (5.0, Limit(7))
    assert [(rule.name, rule.limit) for rule in app.operator.key_limits()] == [("smtp", Limit(2))]
    app.close()


def test_the_limit_of_all_queues_is_written_into_the_control_store_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """By a host of all tenants, and not by a worker of one tenant."""
    (tmp_path / "freehold.toml").write_text('[queues.mail]\nmax = 2\n[queues."*"]\nmax = 7\n')
    monkeypatch.chdir(tmp_path)
    app = Freehold(postgres_url)
    app.migrate()
    app.tenants.create("acme")
    acme = app.tenant("acme")
    assert acme.run_worker(until_idle=True) == 0
    assert [rule.name for rule in acme.operator.queue_limits()] == ["mail"]
    assert app.operator.queue_limits() == []
    assert app.run_worker(tenants="all", until_idle=True) == 0
    assert [(rule.name, rule.limit) for rule in app.operator.queue_limits()] == [("*", Limit(7))]
    assert [rule.name for rule in acme.operator.queue_limits()] == ["mail"]
    app.close()


def test_a_host_writes_weights_and_limits_into_the_stores_of_tenants_with_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "freehold.toml").write_text(
        "[queues.mail]\nweight = 5\nmax = 7\n[limits.smtp]\nmax = 2\n"
    )
    monkeypatch.chdir(tmp_path)
    app = Freehold()

    @app.task(name="send", queue="mail")
    async def send() -> None: ...

    for name in ("acme", "beta"):
        app.tenants.create(name)
    job = send.using(tenant="acme").enqueue()
    app.tenant("acme").operator.set_queue_limit("mail", Limit(1), "ann")
    assert app.run_worker(tenants="all", until_idle=True) == 0
    acme, beta = (app.tenant(name).operator for name in ("acme", "beta"))
    assert acme.show(job.id).job.state == "succeeded"
    (mail,) = acme.queues()
    assert (mail.weight, mail.limit) == (5.0, Limit(7))
    assert [(rule.name, rule.limit) for rule in acme.key_limits()] == [("smtp", Limit(2))]
    assert beta.key_limits() == [], "its first worker writes them"
    assert app.operator.key_limits() == []
    app.close()


def test_no_job_starts_before_the_configured_limits_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is away while the worker starts."""
    (tmp_path / "freehold.toml").write_text("[limits.smtp]\nmax = 1\n")
    monkeypatch.chdir(tmp_path)
    virtual = VirtualApp()
    app, running, seen = virtual.app, 0, []

    @app.task(name="send")
    async def send() -> None:
        nonlocal running
        running += 1
        seen.append(running)
        await asyncio.sleep(0.01)  # the others of the same claim start meanwhile
        running -= 1
        stop.set() if len(seen) == 3 else None

    app.enqueue_many([send.using(limit_key="smtp").prepare()] * 3)
    virtual.database.refused = {"key_limits"}
    stop = asyncio.Event()

    async def scenario() -> None:
        worker = asyncio.create_task(
            app.arun_worker(stop=stop, handle_signals=False, concurrency=3, poll_interval_ms=10)
        )
        asked = virtual.database.times
        await virtual.until(lambda: len(asked("key_limits")) >= 3 or bool(seen), within=120)
        virtual.database.refused = set()
        assert await asyncio.wait_for(worker, 120) == 0

    asyncio.run(scenario())
    assert seen == [1, 1, 1]

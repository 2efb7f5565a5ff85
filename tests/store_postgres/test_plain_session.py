"""The session without our own pipeline; `tests/store_contract` runs on it as a whole."""

from __future__ import annotations

import pytest

from freehold import Freehold
from freehold.errors import BadSettings
from freehold.store.postgres.session import AsyncPostgresSession, PipelinedSession, PostgresSession


@pytest.mark.parametrize(
    ("setting", "kind"), [("plain", PostgresSession), (None, PipelinedSession)]
)
def test_the_setting_chooses_the_session_and_jobs_run_on_it(
    postgres_store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    kind: type[PostgresSession],
) -> None:
    if setting is not None:
        monkeypatch.setenv("FREEHOLD_STORE_SESSION", setting)
    app = Freehold(postgres_store_url)
    ran: list[int] = []

    @app.task(name="append")
    def append(number: int) -> None:
        ran.append(number)

    jobs = app.enqueue_many([append.prepare(number) for number in range(50)])
    assert app.run_worker(until_idle=True) == 0
    assert sorted(ran) == list(range(50))
    assert {app.operator.show(job.id).job.state for job in jobs} == {"succeeded"}
    assert type(app._database.session()) is kind
    assert isinstance(app._database.async_session(), AsyncPostgresSession)
    app.close()


def test_an_unknown_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREEHOLD_STORE_SESSION", "fast")
    with pytest.raises(BadSettings, match='give "pipelined" or "plain"'):
        Freehold()

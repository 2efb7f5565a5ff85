"""Secret arguments and results: no interface shows them, to any role, with or without the tasks."""

from __future__ import annotations

import contextlib
import logging
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from freehold import Context, Freehold, Retry, Secret
from tests.cli.shell import run
from tests.http.api_client import ApiClient, bearer, settings_with

VALUE = "hunter2-and-more"
OTHER = "seen-by-everyone"


class Strict(BaseModel):
    password: Annotated[int, Secret]


class Login(BaseModel):
    user: str
    password: Annotated[str, Secret]


def define(app: Freehold, delivered: list[Any]) -> None:
    @app.task(name="secret")
    def secret(
        ctx: Context, password: Annotated[str, Secret], login: Login | None = None, note: str = ""
    ) -> Annotated[str, Secret]:
        delivered.append((password, login, repr(ctx.job)))
        return f"token of {password}"

    @app.task(name="leaky", retry=Retry(max_attempts=1))
    async def leaky(password: Annotated[str, Secret], note: str = "") -> None:
        try:
            raise KeyError(password)
        except KeyError as error:
            raise ValueError(f"bad login {password!r}") from error

    @app.task(name="leaky-apart", retry=Retry(max_attempts=1))
    def leaky_apart(pin: Annotated[int, Secret]) -> None:
        raise RuntimeError(f"the pin {pin} is wrong")


def everything_shown(client: ApiClient, url: str, ids: list[int]) -> str:
    """The output of every interface that shows jobs. None of them knows the tasks."""
    paths = ["/api/jobs?args=true", "/api/events?after=0&follow=false", "/metrics"]
    commands = [["jobs"], ["jobs", "--json"], ["queues"], ["top", "--once"], ["doctor"]]
    for job_id in map(str, ids):
        paths += [f"/api/jobs/{job_id}?args=true&trace=true", f"/api/jobs/{job_id}/explain"]
        commands += [["job", "show", job_id, "--args", "--trace"], ["job", "explain", job_id]]
        commands += [["job", "show", job_id, "--args", "--json"]]
    texts = [client.get(path, headers=bearer("admin")).text for path in paths]
    for command in commands:
        result = run(*command, "--url", url)
        texts += [result.out, result.err]
    with contextlib.closing(Freehold(url)) as app:
        texts += [repr(app.operator.show(job_id)) for job_id in ids]
    return "\n".join(texts)


@pytest.mark.requirement("N7")
def test_no_interface_shows_a_secret_before_during_or_after_its_job(
    client: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    delivered: list[Any] = []
    define(client.app, delivered)
    tasks = {name: client.app.tasks.get(name) for name in ("secret", "leaky", "leaky-apart")}
    login = Login(user="ann", password=VALUE)
    prepared = tasks["secret"].prepare(VALUE, login=login, note=OTHER)
    assert VALUE not in repr(prepared)
    ids = [job.id for job in client.app.enqueue_many([prepared, prepared])]
    ids += [tasks["leaky"].enqueue(VALUE, note=OTHER).id]
    ids += [tasks["leaky-apart"].enqueue(84372165).id]
    client.open(settings_with(client.folder, *tokens))
    for _ in range(2):  # before and after
        shown = everything_shown(client, client.app.url, ids)
        assert OTHER in shown
        assert "[secret]" in shown
        assert VALUE not in shown
        assert "84372165" not in shown
        client.work()
    assert [(password, login) for password, login, _ in delivered] == [(VALUE, login)] * 2
    assert not any(VALUE in text for _, _, text in delivered)
    assert VALUE not in caplog.text
    assert "bad login '[secret]'" in shown
    assert "the pin [secret] is wrong" in shown
    assert '"result":"[secret]"' in shown.replace('": "', '":"')


@pytest.mark.requirement("N7")
def test_a_retried_job_still_gets_its_secret_and_still_hides_it(client: ApiClient) -> None:
    delivered: list[Any] = []
    define(client.app, delivered)
    job = client.app.tasks.get("secret").enqueue(VALUE)
    client.work()
    client.app.operator.retry(job.id, by="ann")
    assert client.job(job.id).args == '{"password":"[secret]"}'
    client.work()
    assert [password for password, *_ in delivered] == [VALUE, VALUE]


@pytest.mark.requirement("N7")
def test_the_errors_of_bad_arguments_quote_no_secret(client: ApiClient, tokens: list[str]) -> None:
    @client.app.task(name="strict")
    def strict(login: Strict, pin: Annotated[int, Secret] = 84372165) -> None: ...

    client.open(settings_with(client.folder, *tokens))
    for args in ({"login": {"password": VALUE}}, {"login": {"password": 1}, "pin": VALUE}):
        body = {"task": "strict", "args": args}
        response = client.post("/api/jobs", body, headers=bearer("operator"))
        assert response.status_code == 422
        assert "secret argument" in response.text
        assert VALUE not in response.text
        assert "84372165" not in response.text


def test_a_job_of_an_unknown_task_names_its_secrets_itself(client: ApiClient) -> None:
    by_api = client.add("unknown", args={"password": VALUE, "n": 1}, secret_args=["password"])
    command = ("enqueue", "unknown", f"password={VALUE}", "n=1", "--secret", "password", "--json")
    by_command = run(*command, "--url", client.app.url).json["id"]
    for job_id in (by_api, by_command):
        assert client.job(job_id).args == '{"password":"[secret]","n":1}'
    misspelt = {"task": "unknown", "raw": True, "args": {"a": 1}, "secret_args": ["b"]}
    response = client.post("/api/jobs", misspelt)
    assert response.status_code == 422
    assert "'b' is not among the arguments" in response.text


def test_a_worker_whose_code_does_not_fit_stores_no_secret_as_the_reason(
    client: ApiClient,
) -> None:
    """Its own parameters may have no mark, and other types."""

    @client.app.task(name="changed")
    def changed(password: Annotated[str, Secret]) -> None: ...

    job = changed.enqueue(VALUE)
    other = Freehold(client.app.url)

    @other.task(name="changed", retry=Retry(max_attempts=1))
    def strange(password: int) -> None: ...

    assert other.run_worker(until_idle=True, misfit_seconds=0) == 0
    other.close()
    found = client.app.operator.show(job.id)
    assert str(found.job.state) == "failed"
    assert VALUE not in repr(found)


def test_plain_jobs_store_no_policy(client: ApiClient) -> None:
    assert client.job(client.add("greet", args={"name": "ann"})).policy_json is None

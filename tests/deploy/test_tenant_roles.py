"""The roles of deploy/postgres/roles.sql with tenants, whose schemas are created later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege, InvalidParameterValue

from freehold import Freehold, MissingPrivilege
from freehold.model.state import State
from tests.cli.shell import run
from tests.deploy.roles import Roles
from tests.http.api_client import ApiClient, problem

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"


@pytest.fixture(scope="module")
def tenant_roles(shared_roles: Roles) -> Roles:
    """With the tenants acme, and beta, for which the file was not run again yet."""
    owner = shared_roles.app("owner")
    owner.tenants.create("acme")
    shared_roles.run_file()
    owner.tenants.create("beta")
    return shared_roles


def enqueue(app: Freehold, tenant: str | None = None) -> int:
    task = app.tasks.get("quick")
    job_id: int = (task if tenant is None else task.using(tenant=tenant)).enqueue().id
    return job_id


def test_every_role_works_with_a_tenant_once_the_file_was_run_again(tenant_roles: Roles) -> None:
    job_id = enqueue(tenant_roles.app("producer"), "acme")
    worker = tenant_roles.app("worker").tenant("acme")
    assert worker.run_worker(until_idle=True) == 0
    detail = tenant_roles.app("viewer").tenant("acme").operator.show(job_id)
    assert detail.job.state is State.SUCCEEDED
    assert worker._client.store.apply_retention(30, 100) == 0  # rotates partitions of the owner


def test_one_process_serves_a_tenant_beside_one_without_grants(tenant_roles: Roles) -> None:
    job_id = enqueue(tenant_roles.app("producer"), "acme")
    assert tenant_roles.app("worker").run_worker(tenants="all", until_idle=True) == 0
    shown = tenant_roles.app("viewer").tenant("acme").operator.show(job_id)
    assert shown.job.state is State.SUCCEEDED


@pytest.mark.parametrize("name", ["worker", "producer", "viewer"])
def test_a_missing_grant_is_named_with_what_to_do(tenant_roles: Roles, name: str) -> None:
    app = tenant_roles.app(name).tenant("beta")
    with pytest.raises(MissingPrivilege, match=r"freehold_t_beta.*roles.sql again"):
        app.operator.counts()
    result = run("jobs", "--tenant", "beta", env={"FREEHOLD_URL": app.url})
    assert result.code == 3
    assert "permission denied for schema freehold_t_beta" in result.err
    assert "roles.sql again" in result.err


def test_rows_of_a_producer_are_checked_in_the_schema_of_a_tenant_too(tenant_roles: Roles) -> None:
    with tenant_roles.connect("producer") as connection, pytest.raises(InvalidParameterValue):
        connection.execute(
            "insert into freehold_t_acme.job "
            "(id, created_at, stage, priority, max_attempts, queue, task, args) values "
            "(nextval('freehold_t_acme.job_id'), 'infinity', 'r', 0, 1, 'default', 't', '{}')"
        )


def test_only_the_owner_creates_and_drops_tenants(tenant_roles: Roles) -> None:
    """Other roles get an error that names the reason."""
    url = tenant_roles.app("worker").url
    for command in (("create", "gamma"), ("drop", "acme", "--force")):
        result = run("tenants", *command, env={"FREEHOLD_URL": url})
        assert result.code == 3, result
        assert "only the owner role migrates, and creates, moves and drops tenants" in result.err
    assert [tenant.name for tenant in tenant_roles.app("owner").tenants.all()] == ["acme", "beta"]
    assert enqueue(tenant_roles.app("producer"), "acme") > 0


def test_the_api_reports_a_missing_privilege_as_a_problem(
    tenant_roles: Roles, tmp_path: Path
) -> None:
    client = ApiClient(tenant_roles.app("worker"), tmp_path)
    try:
        response = client.post("/api/tenants", {"name": "gamma"})
        assert "only the owner role" in problem(response, 503, "missing-privilege")
        response = client.post("/api/tenants/acme/drop", {"name": "acme", "force": True})
        assert "only the owner role" in problem(response, 503, "missing-privilege")
    finally:
        client.close()


@pytest.fixture
def acme_only(tenant_roles: Roles) -> Iterator[str]:
    """The URL of the user that the page of deployment creates for one tenant."""
    (block,) = re.findall(r"```sql\n(create role acme_worker .*?)```", PAGE.read_text(), re.DOTALL)
    user = tenant_roles.user("acme")
    tenant_roles.admin.execute(block.replace("acme_worker", user).encode())
    yield tenant_roles.url_of("acme")
    tenant_roles.admin.execute(f"drop owned by {user}; drop role {user}".encode())


def test_the_documented_user_of_one_tenant_reaches_no_other(
    tenant_roles: Roles, acme_only: str
) -> None:
    app = tenant_roles.app("acme", schema="freehold_t_acme")
    job_id = enqueue(app)
    assert app.run_worker(until_idle=True) == 0
    assert app.operator.show(job_id).job.state is State.SUCCEEDED
    assert app._client.store.apply_retention(30, 100) == 0
    for sql in (
        "select * from freehold.tenant",
        "select * from freehold.job",
        "select * from freehold_t_beta.job",
        "select * from freehold.leases_by_schema()",
        "drop table freehold_t_acme.job",
        "insert into freehold_t_acme.migration (version, name) values (99, 'x')",
    ):
        with psycopg.connect(acme_only) as connection, pytest.raises(InsufficientPrivilege):
            connection.execute(sql.encode())

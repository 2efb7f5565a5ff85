"""The files in deploy/ fit this program: commands, settings, probes, grace periods."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import psycopg
import pytest

from freehold import __version__
from freehold.cli import main
from freehold.http.asgi import TABLE
from freehold.http_auth import tokens_of
from freehold.lab.devpostgres import find_binaries
from freehold.settings import load
from tests.deploy.files import (
    DEPLOY,
    ROOT,
    CommandLine,
    command_lines,
    compose,
    dockerfile,
    documents,
    manifests,
    pods,
    unit,
    units,
)

GRACE_SECONDS = load(environment={}).workers.shutdown_grace_seconds
LINES = list(command_lines())
TOKEN = "t" * 40


def parsed(line: CommandLine) -> dict[str, Any]:
    """The parsed options; nothing is run."""
    with click.Context(main) as context:
        name, command, rest = main.resolve_command(context, list(line.arguments))
        assert command is not None
        return command.make_context(name, rest, parent=context).params


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.where)
def test_every_command_line_parses(line: CommandLine) -> None:
    assert parsed(line)


def test_an_unknown_option_or_command_is_found() -> None:
    with pytest.raises(click.UsageError):
        parsed(CommandLine("here", ("worker", "--metric-port=1")))
    with pytest.raises(click.UsageError):
        parsed(CommandLine("here", ("work",)))


def environments() -> list[tuple[str, dict[str, str]]]:
    """The variables that compose and Kubernetes set, with a token in place of each secret."""
    found = [(name, service.get("environment", {})) for name, service in compose().items()]
    return found + [
        (name, {each["name"]: each.get("value", TOKEN) for each in container["env"]})
        for name, pod in pods()
        for container in pod["containers"]
    ]


@pytest.mark.parametrize(("where", "variables"), environments(), ids=lambda v: str(v)[:20])
def test_every_variable_is_a_setting_or_holds_a_token(
    where: str, variables: dict[str, str]
) -> None:
    ours = {name: value for name, value in variables.items() if name.startswith("FREEHOLD_")}
    tokens = ours.get("FREEHOLD_HTTP_TOKENS", "")
    token_variables = set(re.findall(r":env:(\w+)", tokens))
    origins = set(load(environment=ours).origins.values())
    assert set(ours) - token_variables <= origins, where
    assert token_variables <= set(ours)
    secrets = dict.fromkeys(token_variables, TOKEN)
    assert len(tokens_of([t for t in tokens.split(",") if t], secrets)) == len(token_variables)


# -- grace periods ---------------------------------------------------------------------------


@pytest.mark.requirement("S4.11")
def test_supervisors_wait_longer_than_a_process_drains() -> None:
    assert int(compose()["freehold"]["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS
    for name in units():
        assert int(unit(name)["Service"]["TimeoutStopSec"]) > GRACE_SECONDS
    graceful = {name: pod for name, pod in pods() if name != "freehold-migrate"}
    assert set(graceful) == {"freehold-workers", "freehold-api"}
    for pod in graceful.values():
        hook = pod["containers"][0].get("lifecycle", {}).get("preStop", {})
        before = int(hook["exec"]["command"][1]) if hook else 0
        assert pod["terminationGracePeriodSeconds"] > GRACE_SECONDS + before


@pytest.mark.requirement("S4.11")
def test_systemd_signals_the_manager_alone() -> None:
    assert unit("freehold.service")["Service"]["KillMode"] == "process"


# -- Kubernetes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pod"), pods(), ids=lambda value: str(value)[:20])
def test_probes_use_paths_and_ports_that_are_served(name: str, pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    params = parsed(CommandLine(name, tuple(container["args"])))
    served = {"up": {route.at for route in TABLE}, "worker": {"/livez"}}
    ports = {each["name"]: each["containerPort"] for each in container.get("ports", ())}
    probes = {key: each["httpGet"] for key, each in container.items() if key.endswith("Probe")}
    if container["args"] == ["migrate"]:
        assert not probes
        return
    assert {"startupProbe", "livenessProbe"} <= set(probes)
    assert probes["livenessProbe"]["path"] == "/livez"
    port, host = ("metrics_port", "metrics_host") if "metrics_port" in params else ("port", "host")
    for probe in probes.values():
        assert probe["path"] in served[container["args"][0]]
        assert ports[probe["port"]] == params[port]
    assert params[host] == "0.0.0.0"


@pytest.mark.parametrize(("name", "pod"), pods(), ids=lambda value: str(value)[:20])
def test_pods_have_no_rights_that_they_do_not_need(name: str, pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        mounts = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        # A manager and its workers keep their process slots there.
        assert mounts == ([] if container["args"] == ["migrate"] else ["/tmp"])


def test_names_in_one_manifest_exist_in_the_others() -> None:
    found = {(each["kind"], each.get("metadata", {}).get("name")): each for each in manifests()}
    for (kind, name), each in found.items():
        if kind == "Deployment":
            labels = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= labels.items(), name
    api = found["Deployment", "freehold-api"]["spec"]["template"]
    service = found["Service", "freehold-api"]["spec"]
    assert service["selector"].items() <= api["metadata"]["labels"].items()
    named = {port["name"] for port in api["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in service["ports"]} <= named
    scaled = found["ScaledObject", "freehold-workers"]["spec"]
    assert ("Deployment", scaled["scaleTargetRef"]["name"]) in found
    (trigger,) = scaled["triggers"]
    assert ("TriggerAuthentication", trigger["authenticationRef"]["name"]) in found
    (kustomization,) = documents("kubernetes/kustomization.yaml")
    assert all((DEPLOY / "kubernetes" / name).exists() for name in kustomization["resources"])
    assert [image["newTag"] for image in kustomization["images"]] == [__version__]


def test_the_scaler_and_the_workers_have_the_same_concurrency() -> None:
    (workers,) = (pod for name, pod in pods() if name == "freehold-workers")
    params = parsed(CommandLine("workers", tuple(workers["containers"][0]["args"])))
    (scaled,) = (each["spec"] for each in manifests() if each["kind"] == "ScaledObject")
    (trigger,) = scaled["triggers"]
    assert int(trigger["metadata"]["targetQueryValue"]) == params["concurrency"]
    query = re.fullmatch(r"select freehold\.backlog\('(\w+)'\)", trigger["metadata"]["query"])
    assert query
    assert (query[1],) == params["queues"]


def test_the_documentation_creates_every_secret_that_is_read() -> None:
    text = json.dumps(manifests())
    read = set(re.findall(r'"secretKeyRef": \{"name": "([\w-]+)", "key": "(\w+)"', text))
    read |= set(re.findall(r'"connection", "name": "([\w-]+)", "key": "(\w+)"', text))
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    made = {
        (name, key)
        for name, rest in re.findall(r"create secret generic (\S+) (.*)", page)
        for key in re.findall(r"--from-literal=(\w+)=", rest)
    }
    assert read == made


# -- the image, and systemd ------------------------------------------------------------------


def test_the_image_copies_files_and_extras_that_exist() -> None:
    found = dockerfile()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"\[([a-z,]+)\]\"", " ".join(found["RUN"]))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    lock = (ROOT / "requirements" / "run.lock").read_text(encoding="utf-8")
    assert [f"--extra {name}" in lock for name in extras.split(",")] == [True, True]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for copied in found["COPY"]:
        for source in copied.split()[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored
    assert json.loads(found["ENTRYPOINT"][-1])[-1] in project["scripts"]
    assert found["USER"] == ["10001:10001"]
    assert {"README.md", "hatch_build.py"} <= set(" ".join(found["COPY"]).split())
    assert f"FROM freehold:{__version__}" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert compose()["freehold"]["image"] == f"freehold:{__version__}"


def test_every_package_of_the_image_is_pinned_by_hash() -> None:
    text = " ".join(dockerfile()["RUN"]).replace("&&", "\n")
    installs = [line.strip() for line in re.split(r"\n|(?=pip )", text) if line.startswith("pip ")]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes" in line or "--no-deps" in line or "--no-index" in line, line


def test_services_of_compose_have_no_rights_that_they_do_not_need() -> None:
    for name, service in compose().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name == "postgres" or "cap_add" not in service
    assert "_owner_login:" in compose()["migrate"]["environment"]["FREEHOLD_URL"]
    assert "_worker_login:" in compose()["freehold"]["environment"]["FREEHOLD_URL"]


def test_the_users_of_compose_are_created_with_their_roles(postgres_url: str) -> None:
    """Under unique names, because roles belong to the whole server."""
    mark = f"t{secrets.token_hex(4)}"
    text = (DEPLOY / "postgres" / "logins.sql").read_text(encoding="utf-8")
    command = [str(find_binaries() / "psql"), "--no-psqlrc", "--set=ON_ERROR_STOP=1", postgres_url]
    passwords = {"OWNER_PASSWORD": "it's one", "WORKER_PASSWORD": "another"}
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for role in ("owner", "worker"):
            admin.execute(f"create role {mark}_{role}".encode())
        for _ in range(2):
            subprocess.run(
                command,
                input=text.replace("freehold_", f"{mark}_"),
                env=os.environ | passwords,
                text=True,
                timeout=120,
                check=True,
            )
        for role in ("owner", "worker"):
            found = admin.execute(
                "select pg_has_role(rolname, %s, 'member'), rolcanlogin, rolsuper, "
                "rolpassword like 'SCRAM-%%' from pg_authid where rolname = %s",
                [f"{mark}_{role}", f"{mark}_{role}_login"],
            ).fetchone()
            assert found == (True, True, False, True)
            admin.execute(f"drop role {mark}_{role}_login, {mark}_{role}".encode())


def test_network_policies_cover_every_pod_and_name_ports_that_exist() -> None:
    policies = [each for each in manifests() if each["kind"] == "NetworkPolicy"]
    covered = [each["spec"]["podSelector"]["matchLabels"] for each in policies]
    workloads = [each for each in manifests() if each["kind"] in ("Deployment", "Job")]
    assert len(workloads) == len(policies)
    for workload in workloads:
        template = workload["spec"]["template"]
        labels = template["metadata"]["labels"]
        (policy,) = (p for p, c in zip(policies, covered, strict=True) if c == labels)
        ports = {port["name"] for port in template["spec"]["containers"][0].get("ports", ())}
        rules = policy["spec"].get("ingress", [])
        assert all(rule["from"] for rule in rules)
        assert {port["port"] for rule in rules for port in rule["ports"]} == ports


@pytest.mark.parametrize("name", units())
def test_units_are_restricted(name: str) -> None:
    service = unit(name)["Service"]
    assert service["CapabilityBoundingSet"] == ""
    assert service["SystemCallFilter"] == "@system-service"
    assert int(service["LimitNOFILE"]) >= 65_536
    on = {key for key, value in service.items() if value == "yes"}
    assert on >= {
        "LockPersonality",
        "NoNewPrivileges",
        "PrivateDevices",
        "ProtectControlGroups",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
    }


@pytest.mark.parametrize("name", units())
def test_systemd_understands_the_unit(name: str, tmp_path: Path) -> None:
    """systemd-analyze checks it where it is installed; elsewhere only the sections are checked."""
    assert set(unit(name).sections()) == {"Unit", "Service", "Install"}
    assert unit(name)["Service"]["Restart"] == "on-failure"
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8")
    path = tmp_path / name.replace("@", "@mail")
    path.write_text(text.replace("/opt/freehold/bin/freehold", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

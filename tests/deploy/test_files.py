"""The files in deploy/ fit this program: commands, settings, probes, grace periods."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from freehold import __version__
from freehold.cli import main
from freehold.http.asgi import TABLE
from freehold.http_auth import tokens_of
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

GRACE_SECONDS = load(environment={})["workers.shutdown_grace_seconds"]
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
    found = [(name, service["environment"]) for name, service in compose().items()]
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
    origins = {value.origin for value in load(environment=ours).values.values()}
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
    extras = re.findall(r"\[([a-z,]+)\]\"", " ".join(found["RUN"]))
    assert extras
    for names in extras:
        assert set(names.split(",")) <= set(project["optional-dependencies"])
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for copied in found["COPY"]:
        for source in copied.split()[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored
    assert json.loads(found["ENTRYPOINT"][-1])[-1] in project["scripts"]
    assert found["USER"] == ["10001:10001"]
    assert project["readme"] in " ".join(found["COPY"])
    assert f"FROM freehold:{__version__}" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert compose()["freehold"]["image"] == f"freehold:{__version__}"


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

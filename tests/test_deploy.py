"""The files in deploy/: they can be read, and their commands are those of the program."""

import json
import re
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from typer.main import get_command

from graphrag_index.__main__ import app
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_server.server_settings import DEFAULT_PORT
from tests.conftest import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text(encoding="utf-8"))


def read_documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def check_command(words: list[str]) -> None:
    """Parse a command of the program; raises for an unknown command or option."""
    assert words[0] == "graphrag-index"
    group: Any = get_command(app)
    context = group.make_context("graphrag-index", words[1:2])
    _, command, _ = group.resolve_command(context, words[1:])
    assert command.make_context(words[1], words[2:], parent=context).args == []


def test_every_file_is_described() -> None:
    described = set(re.findall(r"^\| `([\w.-]+)`", (DEPLOY / "README.md").read_text(), re.M))
    assert described == {path.name for path in DEPLOY.iterdir()} - {"README.md"}


def test_the_ray_job_runs_a_project(tmp_path: Any) -> None:
    project, claim, job = read_documents("kubernetes-rayjob.yaml")
    cluster = job["spec"]["rayClusterSpec"]
    pod = cluster["headGroupSpec"]["template"]["spec"]
    [container] = pod["containers"]
    command = job["spec"]["entrypoint"].split()
    check_command(command)
    assert command[-1] == container["volumeMounts"][0]["mountPath"]
    [group] = cluster["workerGroupSpecs"]
    [worker] = group["template"]["spec"]["containers"]
    # A node with other versions is refused.
    assert worker["image"] == container["image"]
    [kept] = [v["persistentVolumeClaim"] for v in pod["volumes"] if v["name"] == "cache"]
    assert kept["claimName"] == claim["metadata"]["name"]
    [volume] = [volume["configMap"] for volume in pod["volumes"] if volume["name"] == "project"]
    assert volume["name"] == project["metadata"]["name"]
    for item in volume["items"]:
        path = tmp_path / item["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(project["data"][item["key"]])
    assert load_settings(tmp_path).output.startswith("s3://")
    shipped = (REPOSITORY / "workflows" / "embedded.yaml").read_text()
    shown = (tmp_path / "workflows" / "embedded.yaml").read_text()
    assert yaml.safe_load(shown) == yaml.safe_load(shipped)


def test_the_slurm_script_is_a_script_with_a_command_of_the_program() -> None:
    path = DEPLOY / "slurm-ray.sh"
    subprocess.run(["bash", "-n", path], check=True)
    lines = path.read_text().replace("\\\n", "").splitlines()
    [line] = [line for line in lines if line.startswith("srun ")]
    started = shlex.split(line.replace("$1", "project"))
    assert started[2:4] == ["ray", "symmetric-run"]
    # What follows is the command of the first node, which finds the cluster by its address.
    first = started[started.index("--") + 1 :]
    assert first[:2] == ["env", "RAY_ADDRESS=$address"]
    check_command(first[2:])


def test_the_ray_file_names_its_nodes_and_a_command_of_the_program() -> None:
    [cluster] = read_documents("ray-cluster.yaml")
    assert cluster["head_node_type"] in cluster["available_node_types"]
    text = (DEPLOY / "ray-cluster.yaml").read_text()
    [command] = re.findall(r"RAY_ADDRESS=auto (graphrag-index [^\"]+)", text)
    check_command(command.split())


@pytest.mark.parametrize("name", ["writer", "reader"])
def test_policies_allow_no_more_than_the_folders(name: str) -> None:
    policy = json.loads((DEPLOY / f"iam-policy-{name}.json").read_text())
    actions = set()
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        found = statement["Action"]
        actions |= {found} if isinstance(found, str) else set(found)
        resources = statement["Resource"]
        for one in [resources] if isinstance(resources, str) else resources:
            assert one.startswith("arn:aws:s3:::MY_BUCKET")
            assert "Condition" in statement or "/" in one
    writing = {"s3:PutObject", "s3:DeleteObject"} if name == "writer" else set()
    assert actions == {"s3:GetObject", "s3:ListBucket"} | writing


def test_the_image_gets_all_that_the_wheel_is_built_of() -> None:
    copied = set()
    for line in re.findall(r"^COPY (?!--from)(.+)", DOCKERFILE, re.MULTILINE):
        copied.update(line.split()[:-1])
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    packages = re.search(r"^only-include = (\[.+\])", project, re.MULTILINE)
    assert packages is not None
    assert copied == {"pyproject.toml", "README.md", "LICENSE", *json.loads(packages[1])}
    ignored = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").split()
    assert {f"!{name}" for name in copied} <= set(ignored)


def test_the_image_serves_as_another_user_on_its_port() -> None:
    program = json.loads(re.search(r"^ENTRYPOINT (.+)", DOCKERFILE, re.MULTILINE)[1])
    arguments = json.loads(re.search(r"^CMD (.+)", DOCKERFILE, re.MULTILINE)[1])
    assert program == ["graphrag-index"]
    group = get_command(app)
    context = group.make_context("graphrag-index", list(arguments))
    name, command, rest = group.resolve_command(context, arguments)
    assert command.make_context(name, rest, parent=context).params["host"] == "0.0.0.0"
    assert f"EXPOSE {DEFAULT_PORT}" in DOCKERFILE
    assert f"127.0.0.1:{DEFAULT_PORT}/health" in DOCKERFILE
    # The last stage runs as a user without rights.
    assert DOCKERFILE.rpartition("\nFROM ")[2].count("\nUSER graphrag\n") == 1


def test_the_services_find_each_other_and_others_do_not_find_them() -> None:
    services = COMPOSE["services"]
    address = services["open-webui"]["environment"]["OPENAI_API_BASE_URL"]
    assert address == f"http://graphrag:{DEFAULT_PORT}/v1"
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    named = {volume.partition(":")[0] for s in services.values() for volume in s["volumes"]}
    assert named - {"./data"} == set(COMPOSE["volumes"])

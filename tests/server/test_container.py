"""The Dockerfile and compose.yaml fit the program. No image is built: that needs Docker."""

import json
import re

import yaml
from typer.main import get_command

from graphrag_index.__main__ import app
from graphrag_server.server_settings import DEFAULT_PORT
from tests.conftest import REPOSITORY

DOCKERFILE = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text(encoding="utf-8"))


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

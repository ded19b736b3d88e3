"""Generated requests, valid and invalid by the OpenAPI document: none makes the server fail."""

import json
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, openapi

DOCUMENT = json.loads(
    (Path(__file__).parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8")
)
# Routes that write, streams and other protocols have tests of their own.
READING = [
    operation
    for result in openapi.from_dict(DOCUMENT).get_all_operations()
    if (operation := result.ok()).path.startswith("/v1/indexes")
    and (operation.method == "get" or operation.path.endswith("/context"))
    and not operation.path.endswith("/events")
]


def failed_requests(
    client: TestClient, operation: Any, mode: GenerationMode, n_examples: int
) -> list[str]:
    """Return the generated requests to which the server replies with an error of its own."""
    failed = []

    @settings(
        max_examples=n_examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(mode))
    def send(case: Any) -> None:
        case.path_parameters = {**(case.path_parameters or {}), "index": "sample"}
        request = case.as_transport_kwargs(base_url=str(client.base_url))
        request.pop("cookies")
        if isinstance(request.get("data"), str | bytes):
            request["content"] = request.pop("data")
        reply = client.request(**request)
        if reply.status_code >= 500:
            failed.append(f"{request} -> {reply.text[:300]}")

    # An operation without parameters has no invalid request.
    with suppress(Unsatisfiable):
        send()
    return failed


def test_no_generated_request_makes_the_server_fail(sample_client: TestClient) -> None:
    # Valid requests for one operation, and invalid ones for the next.
    for operation, mode in zip(READING, cycle(GenerationMode), strict=False):
        assert failed_requests(sample_client, operation, mode, 2) == []
    assert len(READING) > 20


@pytest.mark.slow
@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.path)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_none_of_many_generated_requests_makes_the_server_fail(
    sample_client: TestClient, operation: Any, mode: GenerationMode
) -> None:
    assert failed_requests(sample_client, operation, mode, 150) == []

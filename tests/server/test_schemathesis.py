"""Generated requests, valid and invalid by the OpenAPI document: none makes the server fail."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


def reading_operations() -> list[Any]:
    """List the operations that read. Those that write, streams and protocols have other tests."""
    # Half a second, which each worker would take to collect the tests.
    from schemathesis import openapi

    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return [
        operation
        for result in openapi.from_dict(document).get_all_operations()
        if (operation := result.ok()).path.startswith("/v1/indexes")
        and (operation.method == "get" or operation.path.endswith("/context"))
        and not operation.path.endswith("/events")
    ]


def failed_requests(client: TestClient, operation: Any, mode: Any, n_examples: int) -> list[str]:
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


@pytest.mark.parametrize("n_examples", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_no_generated_request_makes_the_server_fail(
    sample_client: TestClient, n_examples: int
) -> None:
    from schemathesis import GenerationMode

    modes, operations = list(GenerationMode), reading_operations()
    for number, operation in enumerate(operations):
        # A few valid requests for one operation and invalid ones for the next, or many of both.
        # Any path is valid: a thousand tries would find no invalid one.
        has_invalid = bool(operation.query.items or operation.body.items)
        for mode in modes if n_examples > 2 else [modes[has_invalid and number % 2]]:
            assert failed_requests(sample_client, operation, mode, n_examples) == []
    assert len(operations) > 20

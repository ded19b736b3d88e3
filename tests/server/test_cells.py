"""The cells of a question, and the table of a comparison, over HTTP and MCP."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import CallToolResult

from graphrag_server.routes.ask import AnswerReply
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.agent_client import talk
from tests.fixtures.planted_series import planted_series
from tests.fixtures.served import Served, serve

QUESTION = "Compare the operating margin of Galemark Group, Ostwick and Morewick in Q3 2022."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    series, state = planted_series(tmp_path_factory), tmp_path_factory.mktemp("state")
    with serve(ServerSettings(indexes={"series": series}, state_folder=state)) as server:
        yield server


@pytest.mark.parametrize("path", ["ask", "search/compare"])
def test_http_returns_cells_and_the_table(served: Served, path: str) -> None:
    url = f"{served.url}/v1/indexes/series/{path}"
    answer = AnswerReply.model_validate(httpx2.post(url, json={"question": QUESTION}).json())
    assert answer.method == "compare"
    cells = [(c.thing, c.period, c.state, c.value, c.citations) for c in answer.cells]
    assert cells == [
        ("Galemark Group", "Q3 2022", "found", "11.2%", [1]),
        ("Ostwick", "Q3 2022", "found", "33.9%", [2]),
        ("Morewick", "Q3 2022", "no_thing", "", []),
    ]
    rows = [(row["thing"], row["amount"], row["unit"], row["citations"]) for row in answer.table]
    assert rows == [
        ("Galemark Group", 11.2, "%", [1]),
        ("Ostwick", 33.9, "%", [2]),
        ("Morewick", None, None, []),
    ]


def test_the_openai_protocol_returns_cells(served: Served) -> None:
    body = {"model": "graphrag/series/local", "messages": [{"role": "user", "content": QUESTION}]}
    reply = httpx2.post(f"{served.url}/v1/chat/completions", json=body).json()
    [described] = [
        value for value in reply.values() if isinstance(value, dict) and "cells" in value
    ]
    assert [cell["state"] for cell in described["cells"]] == ["found", "found", "no_thing"]


def test_mcp_returns_cells_with_amounts(served: Served) -> None:
    def ask(**arguments: Any) -> dict[str, Any]:
        async def use(client: Client) -> CallToolResult:
            return await client.call_tool("ask", {"question": QUESTION, **arguments})

        found: dict[str, Any] = talk(served.url, use, "").structured_content
        return found

    answer = ask(method="compare")
    assert answer["cells"][0] == {
        **{"thing": "Galemark Group", "period": "Q3 2022", "state": "found", "value": "11.2%"},
        **{"amount": 11.2, "unit": "%", "citations": [1]},
    }
    assert answer["cells"][2] == {"thing": "Morewick", "period": "Q3 2022", "state": "no_thing"}
    assert [citation["number"] for citation in answer["citations"]] == [1, 2]
    assert [cell["state"] for cell in ask(method="local")["cells"]] == [
        "found",
        "found",
        "no_thing",
    ]

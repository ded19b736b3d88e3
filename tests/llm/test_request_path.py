"""The way of one request: the files that someone who follows it with a debugger has to read."""

import json
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import graphrag_index
from graphrag_index.llm.chat_model import ChatModel, LoopThread
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.request import Outcome, Request
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.step_sections import ExtractGraph
from tests.fixtures.extraction import PROMPTS, entity, reply, run_extract_graph
from tests.fixtures.fake_model import EarlierTables
from tests.model_server import Server

PACKAGE = Path(graphrag_index.__file__).parent
DOCUMENTS = pl.LazyFrame(
    {"id": ["d"], "title": ["Letters"], "path": [""], "language": ["en"], "metadata": ["{}"]}
)
TEXT_UNITS = pl.LazyFrame(
    {
        "human_readable_id": [0, 1],
        "document_id": ["d", "d"],
        "start_char": [0, 11],
        "end_char": [10, 30],
        "text": ["Ada wrote.", "Ada Lovelace wrote."],
        "headings": ["", ""],
    }
)


class RequestPath:
    """The files of the package that execute code while `is_followed`, in all profiled threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.is_followed = False

    def profile(self, frame: Any, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if self.is_followed and event == "call" and path.is_relative_to(PACKAGE):
            self.files.add(path.relative_to(PACKAGE).as_posix())


class FollowedModel(ChatModel):
    """A chat model whose second request is followed; the first one warms up the client."""

    path: RequestPath

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        for number, request in enumerate(requests):
            sys.setprofile(self.path.profile)
            self.path.is_followed = number == 1
            try:
                outcomes = list(super().replies([request]))
            finally:
                self.path.is_followed = False
                sys.setprofile(None)
            yield from outcomes


def test_a_request_passes_ten_files_to_the_socket_and_back(tmp_path: Path) -> None:
    """Follow one request from the step to its outcome, in a fresh ledger and without a retry.

    Counted are the files whose functions act on the request, in the thread of the step and in
    that of the calls. Not counted are `extraction`, whose parser of records the step hands in
    with the request, and `schema`, the settings and the hash that make the cache key.
    """
    path = RequestPath()
    answer = json.dumps(reply(entity("Ada Lovelace", "person", "She wrote.")))
    with Server(answer=lambda _: answer) as server:
        settings = ModelSettings(model="test-model", base_url=server.url)
        ledger = Ledger(tmp_path, version=1)
        threading.setprofile(path.profile)
        loop = LoopThread()
        threading.setprofile(None)  # type: ignore[arg-type]
        model = FollowedModel("chat", settings, "extract_graph", ledger, loop)
        model.path = path
        try:
            tables = run_extract_graph(
                TEXT_UNITS,
                DOCUMENTS,
                settings=ExtractGraph(max_gleanings=0),
                chat_model=model,
                prompts=PROMPTS,
                previous=EarlierTables(),
            )
            assert tables["extracted_entities"]["title"].to_list() == ["Ada Lovelace"]
            assert len(server.requests) == 2
        finally:
            model.close()
            loop.close()
            ledger.close()
    # `spans.py` does nothing unless a trace is recorded, `cancellation.py` unless a client
    # disconnects.
    aside = ("extraction/", "schema/", "spans.py", "llm/cancellation.py")
    counted = {file for file in path.files if not file.startswith(aside)}
    assert {"llm/chat_model.py", "llm/ledger.py", "llm/client.py"} < counted
    assert len(counted | {"steps/extract_graph.py"}) <= 10, sorted(counted)

"""Streaming of texts for people, without the reasoning of the model."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.client import LoopThread
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.reply_parser import VisibleText
from graphrag_index.llm.request import PLAIN_TEXT, Message, Outcome, Request
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.sink import Pieces
from tests.server import Faults, Server

TEXT = "Crean was born in Annascaul. " * 20


def ask(server: Server, sink: Pieces | None) -> Outcome:
    loop = LoopThread()
    settings = ModelSettings(model="test-model", base_url=server.url, timeout=2.0)
    chat = ChatModel("chat", settings, "local", Ledger(None), loop)
    try:
        messages = [Message(role="user", content="Who was Crean?")]
        [outcome] = chat.replies([Request("Crean", messages, PLAIN_TEXT, sink=sink)])
        return outcome
    finally:
        chat.close()
        chat.ledger.close()
        loop.close()


@pytest.fixture(params=["", "<think>Who was he?\n</think>\n\n"], ids=["plain", "thinking"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(answer=lambda chat: request.param + TEXT) as server:
        yield server


def test_a_streamed_text_reaches_the_sink_in_pieces(server: Server) -> None:
    sink = Pieces()
    outcome = ask(server, sink)
    assert outcome.values == (TEXT.strip(),)
    assert sink.text == TEXT
    assert len(sink.pieces) > 5
    assert outcome.spent.calls == 1
    assert outcome.spent.usage.completion > 0


def test_without_a_sink_the_reply_is_not_streamed(server: Server) -> None:
    assert ask(server, None).values == (TEXT.strip(),)


def test_a_broken_stream_is_retried() -> None:
    with Server(answer=lambda chat: TEXT, faults=Faults(by_number=["close_half"])) as server:
        sink = Pieces()
        assert ask(server, sink).values == (TEXT.strip(),)
    assert sink.text == TEXT


@given(
    thoughts=st.sampled_from(["", "<think>so { </b>\n</think>\n", "  <thinking>a\n</thinking> "]),
    text=st.text(min_size=1).filter(lambda text: text.strip()[:1] not in "<[◁"),
    cuts=st.lists(st.integers(1, 9)),
)
def test_no_piece_of_a_stream_is_lost(thoughts: str, text: str, cuts: list[int]) -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    rest = thoughts + text
    for cut in cuts:
        visible.write(rest[:cut])
        rest = rest[cut:]
    visible.write(rest)
    visible.end()
    assert sink.text.strip() == text.strip()


def test_a_broken_stream_restarts_the_sink() -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    visible.write("Half of a")
    visible.end(broken=True)
    assert sink.restarts == 1

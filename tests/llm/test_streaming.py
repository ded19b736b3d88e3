"""Texts that a model writes for people: streamed piece by piece, without its thoughts."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.http_session import LoopThread
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.parsing.reply import VisibleText
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


def test_a_text_is_written_as_it_comes(server: Server) -> None:
    sink = Pieces()
    outcome = ask(server, sink)
    assert outcome.values == (TEXT.strip(),)
    assert sink.text == TEXT
    assert len(sink.pieces) > 5
    assert outcome.spent.calls == 1
    assert outcome.spent.usage.completion > 0


def test_without_a_sink_it_comes_whole(server: Server) -> None:
    assert ask(server, None).values == (TEXT.strip(),)


def test_a_stream_that_breaks_off_begins_again() -> None:
    with Server(answer=lambda chat: TEXT, faults=Faults(by_number=["close_half"])) as server:
        sink = Pieces()
        assert ask(server, sink).values == (TEXT.strip(),)
    assert sink.text == TEXT


@given(
    thoughts=st.sampled_from(["", "<think>so { </b>\n</think>\n", "  <thinking>a\n</thinking> "]),
    text=st.text(min_size=1).filter(lambda text: text.strip()[:1] not in "<[◁"),
    cuts=st.lists(st.integers(1, 9)),
)
def test_no_piece_of_a_text_is_lost_wherever_it_is_cut(
    thoughts: str, text: str, cuts: list[int]
) -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    rest = thoughts + text
    for cut in cuts:
        visible.write(rest[:cut])
        rest = rest[cut:]
    visible.write(rest)
    visible.end()
    assert sink.text.strip() == text.strip()


def test_a_broken_stream_says_that_what_was_written_is_void() -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    visible.write("Half of a")
    visible.end(broken=True)
    assert sink.restarts == 1

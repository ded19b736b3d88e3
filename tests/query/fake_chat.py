"""Questions to an index whose language model is a function."""

from collections.abc import Callable
from typing import Any

from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import Search
from graphrag_query.answering.chat import Chat
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from tests.conftest import REPOSITORY
from tests.index.fake_model import FakeChatModel


class FakeChat(Chat):
    """A chat whose replies a function makes; `asked` are the requests, in order."""

    def __init__(self, answer: Callable[[Request], Any], max_prompt_tokens: int = 100_000) -> None:
        self.fake = FakeChatModel(answer, max_prompt_tokens)
        super().__init__(self.fake, Prompts(REPOSITORY, "graphrag_query"))

    @property
    def asked(self) -> list[Request]:
        return self.fake.asked

    @property
    def prompts_sent(self) -> list[str]:
        """All that was sent, one text a request."""
        return ["\n".join(m["content"] for m in asked.messages) for asked in self.asked]


def question_to(index: Index, text: str, chat: Chat | None = None, **search: Any) -> Question:
    """A question as `Index` makes it."""
    return Question(text, index.model, chat, Search(**search))

"""Requests to summarize the descriptions of one entity or relationship."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any

from graphrag_index.extraction.graph_reply import REPLY_WORDS, clean_line
from graphrag_index.llm.prompts import Prompts, TokenBudget, n_prompt_tokens
from graphrag_index.llm.request import (
    Message,
    Outcome,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    object_schema,
)
from graphrag_index.schema.settings.step_sections import SummarizeDescriptions
from graphrag_nlp.text.sentences import split_sentences

# Tokens reserved in a prompt for names, types and list markers.
N_RESERVED_PROMPT_TOKENS = 300
_SENTENCE_ENDINGS = (*".!?…。！？؟।", *"\"'”’»)")


class SummaryPrompt:
    """Builder of the requests about descriptions, and of the summary from their replies."""

    def __init__(
        self, settings: SummarizeDescriptions, prompts: Prompts, max_prompt_tokens: int
    ) -> None:
        self.settings = settings
        values = {"max_words": str(settings.max_words)}
        content = prompts.fill("summarize_descriptions", values).strip()
        # The system message is equal for all requests, so that providers can cache it.
        self.system = Message(role="system", content=content)
        room = max(max_prompt_tokens - n_prompt_tokens(content) - N_RESERVED_PROMPT_TOKENS, 2)
        self.max_tokens = min(settings.max_input_tokens, room)
        self.budget = TokenBudget(self.max_tokens, room)

    def needs_model_call(self, descriptions: Sequence[str]) -> bool:
        text, most = " ".join(descriptions), self.settings.max_tokens_without_call
        return self.budget.max_cost_of(text) > most and self.budget.cost_of(text) > most

    def cut_descriptions(self, descriptions: Sequence[str]) -> list[str]:
        """Cut long descriptions into pieces, so that any two pieces fit into one request."""
        size = self.max_tokens // 2
        return [piece for text in descriptions for piece in self._cut_text(text, size)]

    def build_request(
        self, about: str, pieces: Sequence[str], first: int = 0, summary: str = ""
    ) -> Request:
        """Build a request with the summary so far, and as many pieces from `first` on as fit."""
        stop = self._find_end_of_pieces(pieces, first, summary)
        shown = [*([self._first_sentences(summary)] if summary else []), *pieces[first:stop]]
        # A description is one line, so that its text cannot begin another one.
        listed = "\n".join(f"- {' '.join(text.split())}" for text in shown)
        user = Message(role="user", content=f"{about}\n\nDescriptions:\n{listed}")

        def next_request(value: str) -> Request | None:
            return None if stop == len(pieces) else self.build_request(about, pieces, stop, value)

        label = f"description of {about.splitlines()[0].partition(': ')[2]}"
        return Request(label, [self.system, user], SUMMARY_FORMAT, then=next_request)

    def final_summary(self, outcome: Outcome, pieces: Sequence[str]) -> str:
        """Return the last summary. After a failed request, append the pieces that it lacks."""
        first, summary = 0, ""
        for value in outcome.values:
            first, summary = self._find_end_of_pieces(pieces, first, summary), value
        if first >= len(pieces):
            return summary
        rest = join_descriptions([*([summary] if summary else []), *pieces[first:]])
        return self._first_sentences(rest, self.max_tokens)

    def _find_end_of_pieces(self, pieces: Sequence[str], first: int, summary: str) -> int:
        """Return the end (exclusive) of the pieces in a request that begins with piece `first`."""
        texts = chain((summary,), islice(pieces, first, None))
        # Add three tokens per list item for its marker and line end.
        most = accumulate(self.budget.max_cost_of(text) + 3 for text in texts)
        if all(n_tokens <= self.max_tokens for n_tokens in most):
            return len(pieces)
        n_tokens = self.budget.cost_of(self._first_sentences(summary)) if summary else 0
        for stop in range(first, len(pieces)):
            n_tokens += self.budget.cost_of(pieces[stop]) + 3
            if n_tokens > self.max_tokens and stop > first:
                return stop
        return len(pieces)

    def _first_sentences(self, text: str, max_tokens: int | None = None) -> str:
        """Return the first sentences that fit into `max_tokens`, by default half of a prompt."""
        return next(self._cut_text(text, max_tokens or self.max_tokens // 2), "")

    def _cut_text(self, text: str, max_tokens: int) -> Iterator[str]:
        """Yield parts of a text of at most `max_tokens`, cut between sentences where possible."""
        n_bytes = len(text.encode("utf-8", "replace"))
        if n_bytes <= max_tokens or self.budget.cost_of(text) <= max_tokens:
            yield text
            return
        sentences = _cut_long_sentences(text, max_tokens)
        yield from _join_while(sentences, lambda part: self.budget.cost_of(part) <= max_tokens)


def join_descriptions(descriptions: Sequence[str]) -> str:
    """Join the distinct descriptions. Add a full stop where one is missing."""
    if len(descriptions) < 2:
        return "".join(descriptions)
    distinct = dict.fromkeys(descriptions)
    return " ".join(text if text.endswith(_SENTENCE_ENDINGS) else f"{text}." for text in distinct)


def _cut_long_sentences(text: str, max_tokens: int) -> Iterator[str]:
    # Count characters instead of tokens: a text seldom has more tokens than characters.
    size = max(max_tokens // 2, 1)
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if len(sentence) <= size:
            yield sentence
            continue
        words = sentence.split()
        pieces = (word[at : at + size] for word in words for at in range(0, len(word), size))
        yield from _join_while(pieces, lambda part: len(part) <= size)


def _join_while(pieces: Iterable[str], fits: Callable[[str], bool]) -> Iterator[str]:
    """Join consecutive pieces with spaces into texts that fit, each as long as possible."""
    text = ""
    for piece in pieces:
        longer = f"{text} {piece}" if text else piece
        if text and not fits(longer):
            yield text
            longer = piece
        text = longer
    if text:
        yield text


def _read_summary(data: Any) -> ParsedReply:
    """Parse {"description": "..."}; raise `ReplyError` if the description is missing or empty."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping):
        fields = {str(key).strip().lower(): value for key, value in data.items()}
        data = next((fields[name] for name in REPLY_WORDS["summary"] if name in fields), None)
    text = clean_line(data) if isinstance(data, str) else ""
    if not text:
        raise ReplyError("it must be an object with a description, which must not be empty")
    return ParsedReply(text)


SUMMARY_FORMAT = ReplyFormat(
    "description",
    object_schema({"description": {"type": "string"}}),
    _read_summary,
    'Reply with one JSON object and nothing else: {"description": "..."}',
)

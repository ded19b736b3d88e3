"""What is asked about the descriptions of one thing, and what is made of the replies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Any

from graphrag_index.extraction.reply_records import clean
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.rendered_rows import Budget, n_prompt_tokens
from graphrag_index.llm.request import (
    Message,
    Outcome,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
)
from graphrag_index.schema.settings.llm_steps import SummarizeDescriptions
from graphrag_index.text.sentences import split_sentences

# What a prompt needs besides instructions and descriptions: names, types, marks.
MARGIN = 300
_DESCRIPTION = ("description", "summary", "text")
_STOPS = (*".!?…。！？؟।", *"\"'”’»)")


@dataclass(frozen=True)
class Pieces:
    """Descriptions of one thing, of which any two fit into a request."""

    texts: Sequence[str]
    # Before which piece a request ends, by the piece and the summary that it begins with.
    stops: dict[tuple[int, str], int] = field(default_factory=dict)


class Writing:
    """What is asked about descriptions, and what is made of the replies."""

    def __init__(
        self, settings: SummarizeDescriptions, prompts: Prompts, max_prompt_tokens: int
    ) -> None:
        self.settings = settings
        values = {"max_words": str(settings.max_words)}
        content = prompts.fill("summarize_descriptions", values).strip()
        # The same for all requests, so that a provider's cache serves it.
        self.system = Message(role="system", content=content)
        room = max(max_prompt_tokens - n_prompt_tokens(content) - MARGIN, 2)
        self.max_tokens = min(settings.max_input_tokens, room)
        self.budget = Budget(self.max_tokens, room)

    def count(self, text: str) -> int:
        """Return what a text takes of `max_tokens`."""
        return self.budget.cost_of(text)

    def needs_call(self, descriptions: Sequence[str]) -> bool:
        text, most = " ".join(descriptions), self.settings.max_tokens_without_call
        return self.budget.most_of(text) > most and self.count(text) > most

    def pieces(self, descriptions: Sequence[str]) -> Pieces:
        """Cut descriptions that are too long, so that two of any fit into a request."""
        return Pieces(
            [piece for text in descriptions for piece in self._cut(text, self.max_tokens // 2)]
        )

    def request(self, about: str, pieces: Pieces, first: int = 0, summary: str = "") -> Request:
        """Ask for a summary of as many pieces from `first` on as fit, with what is summarized."""
        stop = self._stop(pieces, first, summary)
        shown = [*([self._beginning(summary)] if summary else []), *pieces.texts[first:stop]]
        listed = "\n".join(f"- {text}" for text in shown)
        user = Message(role="user", content=f"{about}\n\nDescriptions:\n{listed}")

        def then(value: str) -> Request | None:
            is_last = stop == len(pieces.texts)
            return None if is_last else self.request(about, pieces, stop, value)

        label = f"description of {about.splitlines()[0].partition(': ')[2]}"
        return Request(label, [self.system, user], FORMAT, then=then)

    def description(self, outcome: Outcome, pieces: Pieces) -> str:
        """Return the last summary, with what it does not yet hold if a request failed."""
        first, summary = 0, ""
        for value in outcome.values:
            first, summary = self._stop(pieces, first, summary), value
        if first >= len(pieces.texts):
            return summary
        rest = join([*([summary] if summary else []), *pieces.texts[first:]])
        return self._beginning(rest, self.max_tokens)

    def _stop(self, pieces: Pieces, first: int, summary: str) -> int:
        """Return the piece before which a request that begins with `first` ends."""
        begins = first, summary
        if begins not in pieces.stops:
            pieces.stops[begins] = self._find_stop(pieces.texts, first, summary)
        return pieces.stops[begins]

    def _find_stop(self, pieces: Sequence[str], first: int, summary: str) -> int:
        texts = chain((summary,), islice(pieces, first, None))
        # Three for the mark and the line end of a list item.
        most = accumulate(self.budget.most_of(text) + 3 for text in texts)
        if all(n_tokens <= self.max_tokens for n_tokens in most):
            return len(pieces)
        n_tokens = self.count(self._beginning(summary)) if summary else 0
        for stop in range(first, len(pieces)):
            n_tokens += self.count(pieces[stop]) + 3
            if n_tokens > self.max_tokens and stop > first:
                return stop
        return len(pieces)

    def _beginning(self, text: str, max_tokens: int | None = None) -> str:
        """Return what of a text fits, in whole sentences; by default into half of a request."""
        return next(self._cut(text, max_tokens or self.max_tokens // 2), "")

    def _cut(self, text: str, max_tokens: int) -> Iterator[str]:
        """Cut a text at its sentences, and these anywhere if they are too long."""
        if len(text.encode("utf-8", "replace")) <= max_tokens or self.count(text) <= max_tokens:
            yield text
            return
        piece = ""
        for sentence in _short_sentences(text, max_tokens):
            longer = f"{piece} {sentence}".strip()
            if piece and self.count(longer) > max_tokens:
                yield piece
                longer = sentence
            piece = longer
        if piece:
            yield piece


def join(descriptions: Sequence[str]) -> str:
    """Put descriptions behind each other, each with a full stop where it ends without any."""
    if len(descriptions) < 2:
        return "".join(descriptions)
    return " ".join(
        text if text.endswith(_STOPS) else f"{text}." for text in dict.fromkeys(descriptions)
    )


def _short_sentences(text: str, max_tokens: int) -> Iterator[str]:
    """Give the sentences of a text, those that may be too long in parts."""
    # A token is hardly ever longer than a word of four letters, nor are there more than letters.
    size = max(max_tokens // 2, 1)
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if len(sentence) <= size:
            yield sentence
            continue
        words = ""
        for word in sentence.split(" "):
            if words and len(words) + len(word) >= size:
                yield words
                words = ""
            words = f"{words} {word}".strip()
            while len(words) > size:
                yield words[:size]
                words = words[size:]
        if words:
            yield words


def _read(data: Any) -> ParsedReply:
    """Read {"description": "..."}, with a few liberties.

    Raises
    ------
    ReplyError
        There is no text.
    """
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping):
        fields = {str(key).strip().lower(): value for key, value in data.items()}
        data = next((fields[name] for name in _DESCRIPTION if name in fields), None)
    text = clean(data) if isinstance(data, str) else ""
    if not text:
        raise ReplyError("it must be an object with a description, which must not be empty")
    return ParsedReply(text)


FORMAT = ReplyFormat(
    "description",
    {
        "type": "object",
        "properties": {"description": {"type": "string"}},
        "required": ["description"],
        "additionalProperties": False,
    },
    _read,
    'Reply with one JSON object and nothing else: {"description": "..."}',
)

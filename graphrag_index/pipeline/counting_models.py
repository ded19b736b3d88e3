"""Models for estimates: the models count requests instead of sending them.

A simulated reply consists of sentences of the prompt, because a model describes a sentence in about
as many words as the sentence has. The constants in this module set the length of simulated replies.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.llm.attempts import QuarantinedError
from graphrag_index.llm.cached_model import CachedModel, RequestChain
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import DONE, FILE, QUARANTINED, Ledger
from graphrag_index.llm.limits import max_reply_tokens
from graphrag_index.llm.prompts import find_quoted_texts
from graphrag_index.llm.protocol import Capabilities
from graphrag_index.llm.request import ENCODING, Outcome, ReplyError, Request, prompt_tokens
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings, find_model
from graphrag_nlp.text.sentences import split_sentences

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Number of tokens that mark the start and the end of one message of a prompt.
DELIMITER_TOKENS_PER_MESSAGE = 4
# Number of tokens of a reply per token of its passage, by name of the reply format. The values are
# rough, because the ratio depends on the model and the text.
REPLY_TOKEN_RATIO = {"extraction": 2.0, "claims": 0.5}
# Dimension of the dummy vectors, if the settings do not set a dimension.
DUMMY_DIMENSION = 8
# If a step has fewer past calls than this number, no average length of its replies is computed.
MIN_PAST_CALLS = 20

Json = dict[str, Any]

# Maximum number of words of a simulated description. A model describes a longer sentence, such as a
# list or a table, in fewer words.
MAX_DESCRIPTION_WORDS = 40
# Maximum number of names of one sentence that are related to each other. A sentence with more
# names is a list, and most names of a list are not related.
MAX_RELATED_NAMES = 4
# Maximum number of words in the type of a simulated relationship.
MAX_RELATIONSHIP_TYPE_WORDS = 4
# Number of words of a simulated summary: a little below the default of the setting `max_words`.
SUMMARY_WORDS = 120
# Numbers for a simulated report: findings, words of a finding, and words of its heading.
FINDINGS_PER_REPORT, FINDING_WORDS, HEADING_WORDS = 5, 80, 12
# Number of words of a text, and of items of a list, in simulated replies to a user-defined step.
USER_STEP_WORDS_PER_TEXT, USER_STEP_ITEMS_PER_LIST = 20, 3
# Maximum number of recurring terms that replace names in a sentence without capital letters.
MAX_CASELESS_TERMS_PER_SENTENCE = 3

_UPPER = "".join(re.escape(chr(code)) for code in range(0x10000) if chr(code).isupper())
_WORD = rf"[{_UPPER}](?:[\w’'&.-]*\w)?"
NAME = re.compile(rf"\b{_WORD}(?: (?:(?:of|de|del|la|von|van|der|bin|al) )?{_WORD})*")
_YEAR_PATTERN = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_CASELESS_WORD_PATTERN = re.compile(r"[^\W\d_]{2,}")
_TABLE_ROW = re.compile(r"^\d+,(.+)$", re.MULTILINE)
_LIST_ITEM = re.compile(r"^- (.+)$", re.MULTILINE)


class PastReplies(Ledger):
    """The ledger (cache of replies) of an output folder, read-only; empty if the file is absent."""

    def __init__(self, output: Path) -> None:
        self.is_empty = not (output / FILE).exists()
        super().__init__(None if self.is_empty else output, read_only=not self.is_empty)

    def average_past_replies(self, step: str, model: str) -> tuple[float | None, float]:
        """Return the average tokens of a reply, and the share (0–1) of cached prompt tokens.

        Return None and 0 if the step has fewer than `MIN_PAST_CALLS` replies.
        """
        n_calls, *averages = self.fetch_rows(
            "SELECT count(*), total(completion_tokens) / count(*), "
            "total(cached_tokens) / max(1, total(prompt_tokens)) FROM calls "
            "WHERE step = ? AND model = ? AND completion_tokens > 0",
            step,
            model,
        )[0]
        return (averages[0], averages[1]) if n_calls >= MIN_PAST_CALLS else (None, 0.0)


@dataclass
class RequestCount:
    """Counts of the requests of one step to one model.

    `n_answered` requests have a reply in the ledger, the cache of replies. `n_to_ask` requests have
    no reply yet.
    """

    step: str
    model: str
    is_chat: bool
    n_answered: int = 0
    n_to_ask: int = 0
    # Token counts of the requests without a reply. `fixed_tokens` counts the part of each prompt
    # that is equal in all prompts of the step.
    fixed_tokens: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    seen: set[str] = field(default_factory=set, repr=False)


class CountingModels:
    """The counting models of one estimate, with the interface of `Models`."""

    def __init__(
        self, settings: Mapping[str, ModelSettings], past: PastReplies, dimension: int | None = None
    ) -> None:
        self._dimension = dimension
        self.settings, self.past = settings, past
        self.counts: list[RequestCount] = []

    def open_chat_model(self, name: str, step: str) -> "CountingChatModel":
        settings = find_model(self.settings, name, step)
        self.counts.append(RequestCount(step, name, True))
        return CountingChatModel(settings, self.past, self.counts[-1])

    def open_embedding_model(self, name: str, step: str) -> "CountingEmbeddingModel":
        settings = find_model(self.settings, name, step)
        self.counts.append(RequestCount(step, name, False))
        return CountingEmbeddingModel(settings, self.past, self.counts[-1], self._dimension)


class CountingChatModel(CachedModel):
    """A chat model that counts requests, and returns a stored or a simulated reply."""

    def __init__(self, settings: ModelSettings, past: PastReplies, count: RequestCount) -> None:
        super().__init__(count.model, settings, count.step, past)
        self.count = count
        known = self.get_meta(Capabilities.cache_key(settings))
        self._response_format = Capabilities.from_json(settings, known).response_format

    def set_meta(self, name: str, value: str) -> None:
        """Store nothing, because an estimate does not change the ledger."""

    def mark_used(self, keys: Iterable[str]) -> None:
        """Count the requests with these keys as answered, because their rows are reused."""
        new = set(keys) - self.count.seen
        self.count.seen |= new
        self.count.n_answered += len(new)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order."""
        for request in requests:
            chain = RequestChain(request, self.settings)
            try:
                while not chain.is_answered:
                    self._advance_chain(chain)
                outcome = chain.outcome
            except (QuarantinedError, ReplyError) as error:
                outcome = chain.failed_outcome(error)
            yield outcome

    def _advance_chain(self, chain: RequestChain) -> None:
        """Count the next request of a chain, and add its stored reply or a simulated reply."""
        is_new = chain.key not in self.count.seen
        self.count.seen.add(chain.key)
        try:
            is_stored = chain.add_cached_reply(self.ledger.find_entry)
        except QuarantinedError:
            self.count.n_answered += is_new
            raise
        if is_stored:
            self.count.n_answered += is_new
            return
        request = chain.request
        max_reply_tokens(request, self.settings, prompt_tokens(request, self.settings))
        reply = simulate_reply(request)
        if is_new:
            self._count_request(request, json.dumps(reply, ensure_ascii=False))
        chain.add_reply(request.format.read(reply))

    def _count_request(self, request: Request, reply: str) -> None:
        first, *rest = (_count_tokens(message["content"]) for message in request.messages)
        fixed = first + len(request.messages) * DELIMITER_TOKENS_PER_MESSAGE
        if self._response_format in ("json_schema", "tool"):
            fixed += _count_tokens(json.dumps(request.format.schema, ensure_ascii=False))
        if self._response_format in ("json_object", "text"):
            fixed += _count_tokens(request.format.instructions)
        self.count.n_to_ask += 1
        self.count.fixed_tokens += fixed
        self.count.prompt_tokens += fixed + sum(rest)
        longest = request.max_output_tokens or self.settings.max_output_tokens
        passage = "".join(find_quoted_texts(request.messages[-1]["content"]))
        share = REPLY_TOKEN_RATIO.get(request.format.name)
        # Count the simulated reply if the request is a gleaning request, which has no passage.
        n_reply = (
            round(share * _count_tokens(passage)) if share and passage else _count_tokens(reply)
        )
        self.count.reply_tokens += min(longest, n_reply)


class CountingEmbeddingModel:
    """An embedding model that counts each text as one request.

    `dimension` is the dimension of imported vectors. Imported vectors are not in the ledger.
    """

    def __init__(
        self, settings: ModelSettings, past: PastReplies, count: RequestCount, dimension: int | None
    ) -> None:
        self.settings, self.past, self.count = settings, past, count
        self.dimension = dimension or settings.dimensions or DUMMY_DIMENSION
        self.identity = settings.vector_identity()

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Count each text as one request, and return the same dummy vector for each text."""
        import numpy as np

        for text in texts:
            key = text_key(text, self.settings)
            if key in self.count.seen:
                continue
            self.count.seen.add(key)
            entry = self.past.find_entry(key)
            if entry is not None and entry.state in (DONE, QUARANTINED):
                self.count.n_answered += 1
            else:
                self.count.n_to_ask += 1
                self.count.prompt_tokens += _count_tokens(text)
        if advance:
            advance(len(texts))
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        vectors[:, 0] = 1
        return vectors


# Cache the counts, because many requests contain the same prompt and the same schema.
@lru_cache(maxsize=64)
def _count_tokens(text: str) -> int:
    return count_tokens(text, load_encoding(ENCODING))


def simulate_reply(request: Request) -> Any:
    """Return a simulated reply in the format of a request."""
    content = request.messages[-1]["content"]
    simulate = _SIMULATED_REPLIES.get(request.format.name)
    if simulate is None:
        return _simulate_by_schema(request.format.schema, _simulate_text(content))
    if len(request.messages) > 2:
        # Simulate an empty reply to a gleaning request, which asks for what the extraction missed.
        return simulate("")
    return simulate("".join(find_quoted_texts(content)) or content)


def _simulate_extraction(text: str) -> Json:
    entities: dict[str, Json] = {}
    links: dict[tuple[str, str], Json] = {}
    for sentence, names in split_sentences_with_names(text):
        description = _first_words(sentence, MAX_DESCRIPTION_WORDS)
        for name in names:
            entity = {"name": name, "type": "organization", "description": description}
            entities.setdefault(name, entity)
        for source, target in combinations(names[:MAX_RELATED_NAMES], 2):
            between = sentence.partition(source)[2].partition(target)[0].strip(" ,.;:")
            kind = _first_words(between, MAX_RELATIONSHIP_TYPE_WORDS) or "is related to"
            links.setdefault(
                (source, target),
                {"source": source, "target": target, "type": kind, "description": description,
                 "strength": 5},
            )  # fmt: skip
    return {"entities": list(entities.values()), "relationships": list(links.values())}


def _simulate_claims(text: str) -> Json:
    """Return one claim for each sentence that contains a name and a year."""
    claims = [
        {
            "subject": names[0],
            "object": names[1] if len(names) > 1 else None,
            "type": "dated event",
            "status": "TRUE",
            "start_date": years[0],
            "end_date": years[-1],
            "description": _first_words(sentence, MAX_DESCRIPTION_WORDS),
            "source_text": sentence,
        }
        for sentence, names in split_sentences_with_names(text)
        if names and (years := _YEAR_PATTERN.findall(sentence))
    ]
    return {"claims": claims}


def _simulate_report(text: str) -> Json:
    rows = _TABLE_ROW.findall(text)
    findings = [
        {
            "summary": _first_words(row, HEADING_WORDS),
            "explanation": f"{_first_words(row, FINDING_WORDS)} [Data: Relationships ({number})].",
        }
        for number, row in enumerate(rows[:FINDINGS_PER_REPORT])
    ]
    return {
        "title": " ".join(row.partition(",")[0] for row in rows[:2]),
        "summary": " ".join(finding["summary"] for finding in findings[:3]) or "Nothing.",
        "rating": 5.0,
        "rating_explanation": "It matters as much as others.",
        "findings": findings,
    }


_SIMULATED_REPLIES: Mapping[str, Callable[[str], Json]] = {
    # Simulate the most frequent answer: the two names of a pair are not the same entity.
    "same_entity": lambda text: {"reason": _simulate_text(text), "same": False},
    "extraction": _simulate_extraction,
    "claims": _simulate_claims,
    "description": lambda text: {
        "description": _first_words(
            " ".join(dict.fromkeys(_LIST_ITEM.findall(text))) or text, SUMMARY_WORDS
        )
    },
    "community_report": _simulate_report,
}


def split_sentences_with_names(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each sentence with its distinct names.

    In a script without capital letters, recurring terms replace names.
    """
    terms: Counter[str] | None = None
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if sentence.upper() != sentence.lower():
            yield sentence, _find_names(sentence, text)
            continue
        if terms is None:
            terms = Counter(_split_caseless_terms(text))
        own = dict.fromkeys(term for term in _split_caseless_terms(sentence) if terms[term] > 1)
        yield sentence, sorted(own, key=lambda term: -terms[term])[:MAX_CASELESS_TERMS_PER_SENTENCE]


def _find_names(sentence: str, text: str) -> list[str]:
    names = NAME.findall(sentence)
    if NAME.match(sentence):
        # Remove the first word of a sentence from a name if the text has this word in lower case.
        first, _, rest = names[0].partition(" ")
        names[0] = rest if f" {first.lower()} " in text else names[0]
    return [name for name in dict.fromkeys(names) if name]


def _split_caseless_terms(text: str) -> Iterator[str]:
    """Yield the words of a text, or pairs of letters if its script has no spaces."""
    for match in _CASELESS_WORD_PATTERN.finditer(text):
        word = match[0]
        if len(word) <= 8 and ord(word[0]) < 0x2E80:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))


def _simulate_by_schema(schema: Any, words: str) -> Any:
    """Return a value that is valid for a JSON Schema; each text in the value is `words`."""
    if not isinstance(schema, Mapping):
        return words
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: _simulate_by_schema(part, words) for name, part in properties.items()}
        case "array":
            return [
                _simulate_by_schema(schema.get("items"), words)
                for _ in range(USER_STEP_ITEMS_PER_LIST)
            ]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
    return words


def _simulate_text(text: str) -> str:
    return _first_words(" ".join(text.split()), USER_STEP_WORDS_PER_TEXT)


def _first_words(text: str, n_words: int) -> str:
    """Return the first `n_words` words of a text, cut to an average of 12 characters per word."""
    return " ".join(text.split(" ")[:n_words])[: n_words * 12]

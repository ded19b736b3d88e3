"""Language models of an opened index, and their usage for each question."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_index.errors import ModelError, OutageError, SettingsError
from graphrag_index.llm.local.local_models import VECTORS_FILE, VectorCache, load_embedding_model
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.reply_parser import parse_score
from graphrag_index.llm.request import (
    PLAIN_TEXT,
    SHORTENED_SHARE,
    TOO_LONG,
    Message,
    Outcome,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    Spending,
    TextSink,
    object_schema,
)
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import replace_surrogates
from graphrag_query.answer import Usage
from graphrag_query.rerank import LocalReranker, Reranker, Reranking

if TYPE_CHECKING:
    from graphrag_index.llm.chat_model import ChatModel
    from graphrag_index.llm.registry import Models
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_query.store.index_store import IndexStore

T = TypeVar("T")

# If the setting `search.model` is `auto`, the answers are written by the model of the first of
# these steps that has run.
_STEPS_WITH_WRITING_MODEL = ("create_community_reports", "extract_graph")
# Step under which the ledger, the cache of replies, stores the requests of searches.
LEDGER_STEP = "search"
# Maximum number of replies that are kept in memory for equal requests of later questions.
MAX_KEPT_REPLIES = 2_000
# Tokens reserved for the instructions around a context.
PROMPT_TOKENS = 1_000
# Minimum tokens of a prompt: the instructions, and the smallest context that the settings allow.
MIN_PROMPT_TOKENS = PROMPT_TOKENS + 200
# Highest rating of relevance; the lowest rating is 0.
MAX_RATING = 5
# Names that models use for the fields of their replies.
REPLY_FIELDS = read_lists("reply_fields", Path(__file__).parent)
# Properties of the replies, and instructions for models without JSON Schema, by reply format.
_REPLY_FORMATS = read_lists("reply_formats", Path(__file__).parent)
# Maximum length of a question in characters; a longer text is not a question.
MAX_QUESTION_CHARS = 400
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass
class LLM:
    """The models for one question: `model` writes, `rating_model` answers short requests.

    `on_outage` is called if `rating_model` is down. If both models run on one server,
    `on_outage` can stop the requests to `model`, so that nobody waits for them.
    """

    model: "ChatModel"
    prompts: Prompts
    rating_model: "ChatModel"
    on_outage: Callable[[OutageError], None] = lambda error: None
    spent: Spending = field(default_factory=Spending)
    # Maximum tokens of a prompt after prompts were refused, and whether the last ones were.
    prompt_limit: int = 1 << 40
    is_refused: bool = False

    @property
    def max_prompt_tokens(self) -> int:
        """Maximum tokens of a prompt that `model` and `rating_model` accept."""
        models = (self.model, self.rating_model)
        known = (min(model.max_prompt_tokens, model.tokens.max_prompt) for model in models)
        return min(self.prompt_limit, *known)

    def lower_prompt_limit(self, before: int) -> bool:
        """Return whether prompts of at most `before` tokens were refused, and can be shorter."""
        known, was_refused = self.max_prompt_tokens, self.is_refused
        self.is_refused = False
        # If the server names no limit, look for it in large steps.
        self.prompt_limit = known if known < SHORTENED_SHARE * before else before // 2
        return was_refused and self.prompt_limit >= MIN_PROMPT_TOKENS

    @property
    def usage(self) -> Usage:
        """The calls, tokens and cost of the question so far."""
        return usage_of(self.spent)

    def replies(self, requests: Iterable[Request], rating: bool = False) -> list[Outcome]:
        """Send requests concurrently, and return their outcomes in the same order.

        An outcome has a `failure` if its request failed. With `rating`, the rating model gets
        the requests. Raises `ModelError` if the model cannot be reached.
        """
        model = self.rating_model if rating else self.model
        # A search shortens its prompts itself.
        known = (replace(request, shorten=lambda: None) for request in requests)
        try:
            outcomes = list(model.replies(known))
        except OutageError as error:
            if model is not self.model:
                self.on_outage(error)
            raise
        for outcome in outcomes:
            self.spent.add(outcome.spent)
            self.is_refused = self.is_refused or outcome.failure.startswith(TOO_LONG)
        return outcomes

    def write(
        self, unit: str, messages: Sequence[Message], sink: TextSink | None = None
    ) -> tuple[str, bool]:
        """Let the model write a text.

        Returns the text, and whether the output limit cut it off. The `sink` receives the text
        while it is being written. Raises `ModelError` if the request fails.
        """
        [outcome] = self.replies([Request(unit, messages, PLAIN_TEXT, sink=sink)])
        if outcome.failure:
            raise ModelError(f"The model gave no answer: {outcome.failure.rstrip('.')}.")
        return str(outcome.values[0]), outcome.dropped > 0

    def messages(self, prompt: str, asked: str, **values: str) -> list[Message]:
        """Build the messages of a request: the filled prompt, then the text `asked`.

        The prompt comes first, because providers cache equal beginnings of requests.
        """
        return [
            Message(role="system", content=self.prompts.fill(prompt, values)),
            Message(role="user", content=asked),
        ]


def run_within_limits(run: Callable[[], T], llm: LLM | None) -> T:
    """Run a search, and again with shorter prompts if the server refuses some as too long."""
    while llm is not None:
        before = llm.max_prompt_tokens
        try:
            answer = run()
        except ModelError:
            if not llm.lower_prompt_limit(before):
                raise
        else:
            if not llm.lower_prompt_limit(before):
                return answer
    return run()


def usage_of(spent: Spending) -> Usage:
    """Return the calls, tokens and cost of a question as they are shown in its answer."""
    return Usage(spent.calls, spent.usage.prompt, spent.usage.completion, spent.cost)


class LLMPool:
    """The models of an opened index, opened on first use. Several threads may share a pool.

    Files in `prompts/` in the folder `root` replace the built-in prompts. `output` is the folder
    of the index, whose ledger keeps what is learned of the servers; None for an index of
    Microsoft GraphRAG, into which nothing is written. The ledger of the searches, which keeps
    replies for equal requests, lies in the folder `ledger`; if it is None, it is in memory and
    short.
    """

    def __init__(
        self, settings: "Settings", root: Path, output: Path | None, ledger: Path | None = None
    ) -> None:
        self._settings, self._root, self._output = settings, root, output
        self._ledger = ledger
        self._models: Models | None = None
        self._llms: dict[str, ChatModel] = {}
        self._reranker: Reranker | None = None
        self._lock = threading.Lock()

    def llm(self, index: "IndexStore", writer: str) -> LLM | None:
        """Return the models for one question to an index; None if answers need no model.

        `writer` is the setting `search.model`. Raises `SettingsError` if a model has a context
        window that is too small for searches.
        """
        name = self._answer_model_name(index, writer)
        if name is None:
            return None
        from graphrag_index.llm.prompts import Prompts

        prompts, rating = Prompts(self._root, "graphrag_query"), self._settings.search.rating_model
        writes = self._chat_model(name)
        rates = self._chat_model(rating) if rating else writes
        if rates.settings.base_url == writes.settings.base_url:
            return LLM(writes, prompts, rates, writes.stop)
        return LLM(writes, prompts, rates)

    def discard_models(self) -> None:
        """Make the next question open the models again.

        A model whose server has failed refuses all further requests.
        """
        with self._lock:
            self._llms = {}
            if not isinstance(self._reranker, LocalReranker):
                self._reranker = None

    def close(self) -> None:
        """Close the connections, if any were opened."""
        with self._lock:
            if self._reranker is not None:
                self._reranker.close()
            if self._models is not None:
                self._models.close()
            self._models, self._llms, self._reranker = None, {}, None

    def _answer_model_name(self, index: "IndexStore", name: str) -> str | None:
        """Return the name of the model that writes answers, in the section `models`."""
        if name != "auto":
            return None if name == "none" else name
        ran = {step.name for step in index.version.steps}
        writing = next((step for step in _STEPS_WITH_WRITING_MODEL if step in ran), None)
        return str(getattr(index.settings, writing).model) if writing else None

    def reranking(self, index: "IndexStore") -> Reranking:
        """Return the reranking for one question, as the settings say."""
        name = self._settings.search.rerank_model
        return Reranking(partial(self._open_reranker, index, name) if name else None)

    def _open_reranker(self, index: "IndexStore", name: str) -> Reranker:
        """Return the reranker, a name in the section `models` or a local model."""
        with self._lock:
            if self._reranker is None and name in self._settings.models:
                self._reranker = self._open_models().open_reranker(name, LEDGER_STEP)
            elif self._reranker is None:
                model = load_embedding_model(name)
                # Nothing is written into an index of Microsoft GraphRAG.
                folder = index.backend.output if index.backend.is_ours else None
                vectors = VectorCache(folder / VECTORS_FILE if folder else None)
                self._reranker = LocalReranker(model, vectors)
            return self._reranker

    def _open_models(self) -> "Models":
        """Return the models on servers. The caller holds the lock."""
        from graphrag_index.llm.registry import Models

        if self._models is None:
            longest = self._settings.search.retry_seconds
            # A user waits for an answer: limit the time of retries.
            patient = {
                name: model.model_copy(update={"retry_seconds": min(longest, model.retry_seconds)})
                for name, model in self._settings.models.items()
            }
            self._models = Models(patient, self._ledger, check=False)
            self._models.close_with(self)
            if self._output is not None:
                self._models.ledger.share_capabilities(self._output)
        return self._models

    def _chat_model(self, name: str) -> "ChatModel":
        from graphrag_index.llm.chat_model import ChatModel

        with self._lock:
            models = self._open_models()
            if self._ledger is None:
                models.ledger.limit_replies(MAX_KEPT_REPLIES)
            # Allow requests again that failed for an earlier question; they may succeed now.
            models.ledger.reopen_quarantined([LEDGER_STEP])
            if name not in self._llms:
                llm = models.open_chat_model(name, LEDGER_STEP)
                # Searches do not use a batch API, because a batch may take a day.
                assert isinstance(llm, ChatModel)
                # Only an evaluation keeps a ledger, and measures what an answer costs.
                llm.counts_cached_replies = self._ledger is not None
                if llm.max_prompt_tokens < MIN_PROMPT_TOKENS:
                    raise SettingsError(
                        f"models.{name} leaves {llm.max_prompt_tokens:,} tokens for a prompt, and "
                        f"a search needs {MIN_PROMPT_TOKENS:,}: raise context_window or lower "
                        "max_output_tokens."
                    )
                self._llms[name] = llm
            return self._llms[name]


def first_item(data: Any) -> Any:
    """Return the first item of a list or of nested lists; return any other value unchanged."""
    while isinstance(data, list) and data:
        data = data[0]
    return data


def first_field(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the value of the first of `keys` in a record; None if the record has none of them."""
    return next((value for key in keys if (value := record.get(key)) is not None), None)


def first_text(record: Mapping[str, Any], field: str) -> str:
    """Return the first text in a record under a name of `field` that models use, cleaned."""
    return next(
        (clean_text(t) for k in REPLY_FIELDS[field] if isinstance(t := record.get(k), str)), ""
    )


def find_records(data: Any, name: str, fields: Sequence[str]) -> Sequence[Any]:
    """Return the records of a reply: the list in the field `name`, or in another form.

    Some models reply with a single record that has one of `fields`, with a list alone, with a
    list in another field, or with lines of text. Raises `ReplyError` for any other form.
    """
    if isinstance(data, Mapping) and data and not any(field in data for field in (name, *fields)):
        [data, *others] = data.values()
        if others or not isinstance(data, Mapping | list):
            raise ReplyError(f"it has no {name}")
    elif isinstance(data, Mapping):
        data = data.get(name, [data] if data else [])
    if isinstance(data, Mapping):
        return [data] if any(field in data for field in fields) else list(data.values())
    if isinstance(data, str):
        return [line for line in data.splitlines() if line.strip()]
    if isinstance(data, Sequence | None):
        return data or []
    raise ReplyError(f"its {name} are not a list")


def read_questions(records: Sequence[Any]) -> list[str]:
    """Parse the questions of records, without list markers and duplicates.

    A record is a text or an object. A record without a question is left out.
    """
    names = REPLY_FIELDS["question"]
    texts = (first_field(r, names) if isinstance(r, Mapping) else r for r in records)
    found = [" ".join(_LIST_MARK.sub("", clean_text(text)).split()) for text in texts]
    return list(dict.fromkeys(text for text in found if 0 < len(text) <= MAX_QUESTION_CHARS))


def clean_text(value: object) -> str:
    """Replace lone surrogates, which JSON may contain; return "" if the value is not a string."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def read_importance(value: object) -> float:
    """Parse a score from 0 to 100. A reply without a score counts as 50."""
    score = parse_score(value, 100)
    return 50.0 if score is None else score


def _read_rating(data: Any) -> ParsedReply:
    """Parse a rating: a number, true or false, or the first value in an object or a list."""
    data = first_item(data)
    if isinstance(data, Mapping):
        named = first_field(data, REPLY_FIELDS["rating"])
        data = next(iter(data.values()), None) if named is None else named
    if isinstance(data, bool):
        return ParsedReply(float(MAX_RATING if data else 0))
    rating = parse_score(data, MAX_RATING)
    if rating is None:
        raise ReplyError("it has no rating")
    return ParsedReply(rating)


def reply_format(
    name: str,
    read: Callable[[Any], ParsedReply],
    find: Callable[[str], Any] | None = None,
) -> ReplyFormat:
    """Build the reply format `name` of `reply_formats.yaml`; `read` parses the replies."""
    fields = _REPLY_FORMATS[name]
    schema = object_schema(fields["properties"])
    return ReplyFormat(name, schema, read, fields["instructions"], find)


RATING_FORMAT = reply_format("rating", _read_rating)

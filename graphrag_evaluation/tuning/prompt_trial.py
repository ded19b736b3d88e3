"""A prompt with its types on trial: requests about passages, and scores of the replies."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import SampledPassage
from graphrag_evaluation.tuning.extraction_score import ExtractionScore, score_reply
from graphrag_evaluation.tuning.known_records import KnownRecords
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import FoundRecords, schema_from_settings
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt
from graphrag_index.llm.batch import BatchChatModel
from graphrag_index.llm.chat_model import CachedModel, ChatModel
from graphrag_index.llm.ledger import DONE, FILE, Ledger
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import (
    ENCODING,
    Message,
    Outcome,
    Request,
    RequestSender,
    pair_outcomes,
    request_key,
)
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.step_sections import ExtractGraph

PROMPT = "extract_graph"
# The ledger counts all requests of a tuning for this step.
TUNE_STEP = "tune"


class _ProposedPrompts(Prompts):
    """The prompts of a project, with a proposed text for the extraction."""

    def __init__(self, root: Path, text: str) -> None:
        super().__init__(root)
        self.text = text

    def read_prompt(self, name: str) -> str:
        return self.text if name == PROMPT else super().read_prompt(name)


class _NoHistory:
    """A substitute for the chat model: a prompt on trial has no earlier requests."""

    def get_meta(self, name: str) -> str | None:
        return None

    def set_meta(self, name: str, value: str) -> None: ...

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True)
class PromptTrial:
    """An extraction prompt with the settings of its step."""

    root: Path
    settings: ExtractGraph
    text: str
    _prompt: ExtractionPrompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prompts = _ProposedPrompts(self.root, self.text)
        schema = schema_from_settings(self.settings)
        prompt = ExtractionPrompt(schema, self.settings.max_gleanings, prompts, _NoHistory())
        object.__setattr__(self, "_prompt", prompt)

    def build_request(self, passage: SampledPassage) -> Request:
        """Build the request that the step extract_graph would send about a passage."""
        text = Passage(passage.text, passage.language)
        return self._prompt.build_first_request(
            PassagePrompt(text, passage.label, passage.headings)
        )

    def extract(
        self, model: RequestSender, passages: Sequence[SampledPassage]
    ) -> Iterator[tuple[SampledPassage, Outcome, FoundRecords]]:
        """Ask a model about passages; yield the outcomes with their records."""
        requests = ((passage, self.build_request(passage)) for passage in passages)
        for passage, outcome in pair_outcomes(model, requests):
            values = [value for value in outcome.values if isinstance(value, FoundRecords)]
            found = self._prompt.merge_replies(values) if values else FoundRecords()
            yield passage, outcome, found

    def evaluate(
        self,
        model: RequestSender,
        passages: Sequence[SampledPassage],
        known: Mapping[str, KnownRecords],
    ) -> list[ExtractionScore]:
        """Score the replies about passages."""
        if not passages:
            return []
        system = self.build_request(passages[0]).messages[0]["content"]
        n_tokens = count_tokens(system, load_encoding(ENCODING))
        return [
            score_reply(passage, outcome, found, known.get(passage.key), n_tokens)
            for passage, outcome, found in self.extract(model, passages)
        ]


def system_and_user(system: str, user: str) -> list[Message]:
    """Return the two messages of a request."""
    return [Message(role="system", content=system), Message(role="user", content=user)]


class ReusingModel:
    """A chat model that first copies replies from the ledger of the index into its own ledger.

    A tuning has a ledger of its own, so that failed requests of a tuning are not those of a run.
    `advance` is called for each outcome.
    """

    def __init__(
        self,
        model: ChatModel | BatchChatModel,
        output: Path,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self.model, self.output, self.advance = model, output, advance

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Send the requests that neither ledger answers; yield outcomes in order."""
        with ExitStack() as stack:
            if (self.output / FILE).exists():
                earlier = stack.enter_context(closing(Ledger(self.output, read_only=True)))
                requests = self._copy_replies(requests, earlier)
            for outcome in self.model.replies(requests):
                self.advance()
                yield outcome

    def _copy_replies(self, requests: Iterable[Request], earlier: Ledger) -> Iterator[Request]:
        own, name = self.model.ledger, self.model.name
        for request in requests:
            key = request_key(request, self.model.settings)
            entry = earlier.find_entry(key) if own.find_entry(key) is None else None
            if entry is not None and entry.state == DONE:
                own.record_sent(key, TUNE_STEP, request.unit, name)
                own.record_replies({key: entry.reply}, entry.reason)
            yield request


class UnsentRequests:
    """A substitute for a chat model: it answers from ledgers, and keeps what they do not answer."""

    def __init__(self, name: str, settings: ModelSettings, ledgers: Sequence[Ledger]) -> None:
        self.settings, self.requests = settings, list[Request]()
        self._known = [CachedModel(name, settings, TUNE_STEP, ledger) for ledger in ledgers]

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the replies of the ledgers; a request that they do not answer has failed."""
        for request in requests:
            found = (model.cached_values(request) for model in self._known)
            values = next(filter(None, found), ())
            if not values:
                self.requests.append(request)
            yield Outcome(request.unit, values, failure="" if values else "not sent")

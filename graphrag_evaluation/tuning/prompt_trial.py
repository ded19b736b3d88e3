"""A prompt with its types on trial: requests about passages, and scores of the replies.

A reply is valid, grounded in its passage, complete and short.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_evaluation.tuning.corpus_sample import KnownRecords, SampledPassage, locate_records
from graphrag_index.extraction.alignment import Passage, Span
from graphrag_index.extraction.graph_reply import (
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    schema_from_settings,
)
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

# What a thousand tokens of prompt and reply cost in the score.
PENALTY_OF_1000_TOKENS = 0.02
# Two mentions are the same if they share this part of the longer one.
MIN_SHARED_PART = 0.5
PROMPT = "extract_graph"
# The ledger counts all requests of a tuning for this step.
TUNE_STEP = "tune"


@dataclass(frozen=True)
class ExtractionScore:
    """Parts of the score of one reply, from 0 to 1, and what the reply lacks.

    `recall` is None if nothing is known of the passage. An unreadable reply has the parts 0.
    """

    passage: SampledPassage
    validity: float  # share of the records that are valid
    grounded: float  # share of the records whose names stand in the passage
    recall: float | None  # share of the known entities and relationships that are found
    n_tokens: int  # of the system message and the reply
    missed: tuple[str, ...] = ()  # known entities and relationships that are not found
    ungrounded: tuple[str, ...] = ()  # names that the passage does not contain
    failure: str = ""  # why the reply cannot be read

    @property
    def total(self) -> float:
        """The mean of the parts, less the penalty for the length."""
        parts = [part for part in (self.validity, self.grounded, self.recall) if part is not None]
        penalty = PENALTY_OF_1000_TOKENS * self.n_tokens / 1_000
        return sum(parts) / len(parts) - penalty


def score_reply(
    passage: SampledPassage,
    outcome: Outcome,
    found: FoundRecords,
    known: KnownRecords | None,
    n_prompt_tokens: int,
) -> ExtractionScore:
    """Score the records that a model found in a passage.

    A reply without any record is valid; it is grounded only if nothing is known of the passage.
    """
    recall = None if known is None or not known.entities else 0.0
    if outcome.failure:
        missed = [entity.name for entity in known.entities] if known else []
        return ExtractionScore(
            passage, 0, 0, recall, n_prompt_tokens, tuple(missed), (), outcome.failure
        )
    located, absent = locate_records(passage, found)
    n_records = len(found.entities) + len(found.relationships)
    gone = set(absent)
    n_ungrounded = len(absent) + sum(
        bool({link.source, link.target} & gone) for link in found.relationships
    )
    missed = []
    if known is not None and known.entities:
        recall, missed = _compare(located, known)
    empty = float(recall is None)
    records = [*map(FoundEntity._asdict, found.entities)]
    records += map(FoundRelationship._asdict, found.relationships)
    reply = json.dumps(records, ensure_ascii=False)
    return ExtractionScore(
        passage,
        validity=1.0 if not outcome.dropped else n_records / (n_records + outcome.dropped),
        grounded=1 - n_ungrounded / n_records if n_records else empty,
        recall=recall,
        n_tokens=n_prompt_tokens + count_tokens(reply, load_encoding(ENCODING)),
        missed=tuple(missed),
        ungrounded=tuple(absent),
    )


def count_missed_entities(located: KnownRecords, known: KnownRecords) -> int:
    """Return the number of known entities that are not among those of a reply."""
    found = {_find_same(entity.spans, known) for entity in located.entities}
    return len(known.entities) - len(found - {None})


def _compare(located: KnownRecords, known: KnownRecords) -> tuple[float, list[str]]:
    """Return the share of the known records that are found, and the others as texts.

    Entities count one half, relationships the other half. A relationship is found if a record
    joins the same two entities, in either direction.
    """
    same = {
        at: number
        for at, entity in enumerate(located.entities)
        if (number := _find_same(entity.spans, known)) is not None
    }
    found_pairs = {
        (min(ends), max(ends))
        for pair in located.pairs
        if len(ends := {same.get(end, -1) for end in pair} - {-1}) == 2
    }
    numbers = set(same.values())
    missed = [e.name for at, e in enumerate(known.entities) if at not in numbers]
    shares = [len(numbers) / len(known.entities)]
    if known.pairs:
        shares.append(len(found_pairs & known.pairs.keys()) / len(known.pairs))
        missed += [
            f"{known.entities[one].name} – {known.entities[other].name}"
            for one, other in known.pairs
            if (one, other) not in found_pairs
        ]
    return sum(shares) / len(shares), missed


def _find_same(spans: Sequence[Span], known: KnownRecords) -> int | None:
    """Return the known entity with the most similar mention, if one is similar enough."""
    parts = (
        (_shared_part(one, other), -number)
        for number, entity in enumerate(known.entities)
        for one in spans
        for other in entity.spans
    )
    part, number = max(parts, default=(0.0, 0))
    return -number if part >= MIN_SHARED_PART else None


def _shared_part(one: Span, other: Span) -> float:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared / max(one[1] - one[0], other[1] - other[0])


def mean_parts(scores: Iterable[ExtractionScore]) -> dict[str, float]:
    """Return the means of the parts of several scores, for a table; {} without scores."""
    scores = list(scores)
    if not scores:
        return {}
    recalls = [score.recall for score in scores if score.recall is not None]
    n = len(scores)
    return {
        "score": sum(score.total for score in scores) / n,
        "validity": sum(score.validity for score in scores) / n,
        "grounded": sum(score.grounded for score in scores) / n,
        **({"recall": sum(recalls) / len(recalls)} if recalls else {}),
        "tokens": sum(score.n_tokens for score in scores) / n,
        "unreadable": float(sum(bool(score.failure) for score in scores)),
    }


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

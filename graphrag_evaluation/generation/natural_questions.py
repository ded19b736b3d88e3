"""Questions in natural words: a model writes them, and a second request checks each.

The known answers and spans come from the documents, never from the model alone: a question is
made from passages, with quotations that stand in them. The check shows the spans and the question
only; a question whose answer is not found again is dropped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphrag_evaluation.generation.make_questions import (
    KINDS,
    SPLITS,
    Corpus,
    check_kinds,
    number_questions,
)
from graphrag_evaluation.generation.model_requests import (
    DroppedError,
    ask_again,
    ask_for_question,
    confirm,
    read_question,
)
from graphrag_evaluation.generation.passages import PassageSources, Source
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request, RequestSender, Spending, pair_outcomes
from graphrag_nlp.text.normalize import fold
from graphrag_query.index import Index

# Step under which the ledger stores the requests.
LEDGER_STEP = "make questions"
# How often more questions are asked for in place of those that were dropped.
MAX_ROUNDS = 4
# Passages that a question is checked with which the documents should not answer.
MAX_SIMILAR_TEXTS = 8
# Length of a question, for an estimate.
MAX_QUESTION_CHARS = 200
UNREADABLE = "a reply could not be read"
T = TypeVar("T")


@dataclass
class NaturalQuestions:
    """Questions that passed their checks, and how many were dropped for each reason."""

    questions: list[EvaluationQuestion] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    spent: Spending = field(default_factory=Spending)


class QuestionMaker:
    """Makes questions from an index with a model; equal replies give equal questions.

    Raises `SettingsError` for an unknown kind.
    """

    def __init__(
        self,
        index: Index,
        n: int,
        seed: int,
        kinds: Sequence[str],
        prompts: Prompts,
        splits: Sequence[str] = SPLITS,
    ) -> None:
        """Share `n` questions out among kinds and splits; only those of `splits` are made."""
        check_kinds(kinds)
        self._corpus = Corpus(index)
        self._prompts = prompts
        shares = _share_out(n, kinds).items()
        self._wanted = Counter({key: share for key, share in shares if key[1] in splits})
        passages = PassageSources(index, seed)
        self._sources = {key: passages.list_sources(*key) for key in self._wanted}

    @property
    def n_wanted(self) -> int:
        """The number of questions if none is dropped and the index has enough passages."""
        return self._wanted.total()

    def expected_requests(self) -> Iterator[Request]:
        """Yield the requests for questions, and for their checks in about the right length."""
        for source in self._take(self._wanted):
            yield ask_for_question(source, self._prompts)
            texts = [passage.text for passage in source.passages]
            question = EvaluationQuestion(
                "",
                texts[0][:MAX_QUESTION_CHARS],
                source.kind,
                spans=tuple(GoldSpan("", 0, 0, text) for text in texts),
                statements=tuple(texts),
                is_answerable=source.kind != "unanswerable",
            )
            yield ask_again(question, self._texts_of(question, source), self._prompts)

    def make(
        self, model: RequestSender, advance: Callable[[], None] = lambda: None
    ) -> NaturalQuestions:
        """Ask the model for questions, and in rounds for others in place of those dropped."""
        found = NaturalQuestions()
        missing = self._wanted.copy()
        seen: set[str] = set()
        for _ in range(MAX_ROUNDS):
            sources = list(self._take(missing))
            if not sources:
                break
            made = list(self._write(model, sources, seen, found, advance))
            for question in self._check(model, made, found, advance):
                found.questions.append(question)
                missing[question.kind, question.split] -= 1
        found.questions = number_questions(found.questions)
        return found

    def _take(self, missing: Counter[tuple[str, str]]) -> Iterator[Source]:
        for key, sources in self._sources.items():
            for _, source in zip(range(missing[key]), sources, strict=False):
                yield source

    def _write(
        self,
        model: RequestSender,
        sources: Sequence[Source],
        seen: set[str],
        found: NaturalQuestions,
        advance: Callable[[], None],
    ) -> Iterator[tuple[EvaluationQuestion, Source]]:
        """Ask for a question from each source, and yield those with evidence in the texts."""
        requests = ((source, ask_for_question(source, self._prompts)) for source in sources)
        for source, value in _read_replies(model, requests, found, advance):
            try:
                question = read_question(value, source)
            except DroppedError as reason:
                found.dropped[str(reason)] += 1
                continue
            folded = fold(question.text)
            if folded in seen:
                found.dropped["the same question was made before"] += 1
                continue
            seen.add(folded)
            yield question, source

    def _check(
        self,
        model: RequestSender,
        made: Sequence[tuple[EvaluationQuestion, Source]],
        found: NaturalQuestions,
        advance: Callable[[], None],
    ) -> Iterator[EvaluationQuestion]:
        """Ask each question again with its spans alone, and yield those that are confirmed."""
        requests = (
            (question, ask_again(question, self._texts_of(question, source), self._prompts))
            for question, source in made
        )
        for question, value in _read_replies(model, requests, found, advance):
            try:
                yield confirm(question, value)
            except DroppedError as reason:
                found.dropped[str(reason)] += 1

    def _texts_of(self, question: EvaluationQuestion, source: Source) -> list[str]:
        """Return the spans of a question; without an answer, the texts most likely to have one."""
        if question.is_answerable:
            return [span.text for span in question.spans]
        similar = list(self._corpus.similar_texts(question.text, MAX_SIMILAR_TEXTS))
        return [passage.text for passage in source.passages] + similar


def _read_replies(
    model: RequestSender,
    requests: Iterable[tuple[T, Request]],
    found: NaturalQuestions,
    advance: Callable[[], None],
) -> Iterator[tuple[T, Any]]:
    """Send requests from pairs (item, request); yield (item, value) for replies without failure."""
    for item, outcome in pair_outcomes(model, requests):
        advance()
        found.spent.add(outcome.spent)
        if outcome.failure:
            found.dropped[UNREADABLE] += 1
        else:
            yield item, outcome.values[0]


def _share_out(n: int, kinds: Sequence[str]) -> dict[tuple[str, str], int]:
    """Return how many of `n` questions each kind and split gets, by the shares of the kinds."""
    total = sum(KINDS[kind] for kind in kinds) * len(SPLITS)
    exact = {(kind, split): n * KINDS[kind] / total for kind in kinds for split in SPLITS}
    wanted = {key: int(share) for key, share in exact.items()}
    by_rest = sorted(exact, key=lambda key: wanted[key] - exact[key])
    for key in by_rest[: n - sum(wanted.values())]:
        wanted[key] += 1
    return wanted

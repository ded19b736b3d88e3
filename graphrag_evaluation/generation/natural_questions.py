"""Questions in natural words: a model writes them, and a second request checks each.

The known answers and spans come from the documents, never from the model alone: a question is made
from passages, with quotations that are found in them. The check shows the spans and the question
only; a question whose answer is not found again is dropped.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import polars as pl

from graphrag_evaluation.generation.make_questions import (
    KINDS,
    MIN_DOCUMENTS,
    MIN_STATEMENTS,
    SPLITS,
    Corpus,
    check_kinds,
    number_questions,
    split_of,
)
from graphrag_evaluation.judge import BOOLEAN, TEXT, make_request
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import (
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    RequestSender,
    Spending,
    object_schema,
    pair_outcomes,
)
from graphrag_nlp.text.normalize import fold, is_unspaced
from graphrag_nlp.text.sentences import find_quotation, split_sentences
from graphrag_query.index import Index
from graphrag_query.llm import clean_text

# Maximum number of text units, evenly spaced, to choose passages from: limits memory and time.
MAX_TEXT_UNITS = 20_000
# A shorter text unit is a heading or a fragment.
MIN_PASSAGE_TOKENS = 30
# A longer passage is cut: a question needs few sentences.
MAX_PASSAGE_CHARS = 4_000
# A name in more text units than this joins passages that have little else in common.
MAX_NAMED_TEXT_UNITS = 30
# Maximum number of passages for a question on the whole corpus, each from another document.
MAX_THEME_PASSAGES = 8
# Step under which the ledger stores the requests.
LEDGER_STEP = "make questions"
# Maximum number of rounds in which new questions are requested in place of dropped ones.
MAX_ROUNDS = 4
# Number of similar passages that must not answer a question that is made to be unanswerable.
MAX_SIMILAR_TEXTS = 8
# Assumed number of characters of a question, for an estimate of costs.
MAX_QUESTION_CHARS = 200
UNREADABLE = "a reply could not be read"
T = TypeVar("T")
# Share of the letters of a known answer that a shorter reply must have to agree with it.
MIN_ANSWER_SHARE = 1 / 3
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Passage:
    """The text of a text unit, with its place in the document."""

    document: str
    start_char: int
    text: str

    def find_sentences(self, quotation: str) -> GoldSpan | None:
        """Return the span of the sentences with a quotation; None if the passage lacks it."""
        found = find_quotation(quotation, self.text)
        if found is None:
            return None
        around = [
            sentence
            for sentence in split_sentences(self.text)
            if sentence.start < found[1] and found[0] < sentence.end
        ]
        start = min([found[0], *(sentence.start for sentence in around)])
        end = max([found[1], *(sentence.end for sentence in around)])
        return GoldSpan(
            self.document, self.start_char + start, self.start_char + end, self.text[start:end]
        )


@dataclass(frozen=True)
class Source:
    """The passages from which a model writes one question; `topic` is their common subject."""

    kind: str
    split: str
    passages: tuple[Passage, ...]
    topic: str = ""


class PassageSources:
    """A seeded choice of passages for questions of each kind, of one split at a time."""

    def __init__(self, index: Index, seed: int) -> None:
        self._store, self._seed = index.store, seed
        step = max(1, -(-self._store.n_rows("text_units") // MAX_TEXT_UNITS))
        units = (
            self._store.scan("text_units")
            .filter(pl.col("human_readable_id") % step == 0)
            .filter(pl.col("n_tokens") >= MIN_PASSAGE_TOKENS)
            .select("id", "document_id", number="human_readable_id")
            .collect()
        )
        documents = units["document_id"].unique(maintain_order=True).to_list()
        splits = {document: split_of(document, seed) for document in documents}
        self._units = units.with_columns(
            split=pl.col("document_id").replace_strict(splits, return_dtype=pl.String)
        )

    def list_sources(self, kind: str, split: str) -> Iterator[Source]:
        """Yield the passages for one question after the other."""
        mixer = random.Random(f"{self._seed} {split} {kind}")
        units = self._units.filter(split=split)
        if kind == "whole-corpus":
            yield from self._list_themes(units, split, mixer)
        elif kind in ("two-hop", "comparison"):
            yield from self._list_pairs(units, kind, split, mixer)
        else:
            for number in _one_of_each_document(units, mixer):
                yield Source(kind, split, self._read([number]))

    def _list_pairs(
        self, units: pl.DataFrame, kind: str, split: str, mixer: random.Random
    ) -> Iterator[Source]:
        """Yield pairs of passages that name one entity, if possible from two documents."""
        if not self._store.has_table("mentions"):
            return
        entities = self._store.scan("entities").select("title", entity="human_readable_id")
        named = (
            self._store.scan("mentions")
            .select("entity", number=pl.col("text_unit").cast(pl.Int64))
            .unique()
            .join(units.lazy().select("number", "document_id"), on="number")
            .filter(pl.len().over("entity").is_between(2, MAX_NAMED_TEXT_UNITS))
            .join(entities, on="entity")
            .sort("entity", "number")
            .group_by("entity", maintain_order=True)
            .agg(pl.first("title"), "number", "document_id")
            .collect()
        )
        rows = list(named.iter_rows())
        mixer.shuffle(rows)
        for _, title, numbers, documents in rows:
            places = list(zip(numbers, documents, strict=True))
            mixer.shuffle(places)
            first, document = places[0]
            others = [number for number, other in places if other != document]
            # Leave out neighbouring text units of one document: they overlap.
            others = others or [number for number, _ in places if abs(number - first) > 1]
            if others:
                yield Source(kind, split, self._read([first, others[0]]), title)

    def _list_themes(
        self, units: pl.DataFrame, split: str, mixer: random.Random
    ) -> Iterator[Source]:
        """Yield passages of each community that is in several documents, with its report."""
        if not self._store.has_table("community_reports"):
            return
        columns = ("community", "title", "summary")
        reports = self._store.scan("community_reports").select(columns).collect()
        texts = {row[0]: f"{row[1]}\n{row[2]}" for row in reports.iter_rows()}
        members = (
            self._store.scan("communities")
            .select("community", id="text_unit_ids")
            .explode("id")
            .join(units.lazy(), on="id")
            .sort("community", "number")
            .group_by("community", maintain_order=True)
            .agg("number", "document_id", n=pl.col("document_id").n_unique())
            .filter(pl.col("n") >= MIN_DOCUMENTS)
            .collect()
        )
        rows = list(members.iter_rows())
        mixer.shuffle(rows)
        for community, numbers, documents, _ in rows:
            inside = pl.DataFrame({"number": numbers, "document_id": documents})
            chosen = _one_of_each_document(inside, mixer)[
                : min(MAX_THEME_PASSAGES, len(set(documents)))
            ]
            if community in texts:
                passages = self._read(chosen)
                yield Source("whole-corpus", split, passages, texts[community])

    def _read(self, numbers: Sequence[int]) -> tuple[Passage, ...]:
        found = self._store.text_units(numbers)
        return tuple(_passage(found[number]) for number in numbers)


def _passage(unit: Mapping[str, object]) -> Passage:
    text, start = str(unit["text"]), unit["start_char"]
    assert isinstance(start, int)
    return Passage(str(unit["document_id"]), start, text[:MAX_PASSAGE_CHARS])


def _one_of_each_document(units: pl.DataFrame, mixer: random.Random) -> list[int]:
    """Shuffle text units so that each document gives one before a document gives two."""
    of_document: dict[str, list[int]] = defaultdict(list)
    for number, document in units.select("number", "document_id").iter_rows():
        of_document[document].append(number)
    ranked = []
    for numbers in of_document.values():
        mixer.shuffle(numbers)
        ranked += [(place, mixer.random(), number) for place, number in enumerate(numbers)]
    return [number for *_, number in sorted(ranked)]


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
        """Yield requests for an estimate: for questions, and checks of about the right length."""
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
        """Ask the model for questions; then, in rounds, for others in place of dropped ones."""
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
        """Return the texts to check a question with: its spans, or else similar texts."""
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


class DroppedError(Exception):
    """A question that is not kept; the message is the reason, as the command counts it."""


def _read_question(data: Any) -> ParsedReply:
    if not isinstance(data, Mapping) or not isinstance(data.get("question"), str):
        raise ReplyError("it has no question")
    quotations = data.get("quotations", [])
    if not isinstance(quotations, list):
        raise ReplyError("its quotations are no list")
    kept = [clean_text(text) for text in quotations if isinstance(text, str) and text.strip()]
    read = {
        "question": clean_text(data["question"]),
        "answer": clean_text(data.get("answer")),
        "quotations": kept,
    }
    return ParsedReply(read, len(quotations) - len(kept))


def _read_check(data: Any) -> ParsedReply:
    flags = ("clear", "answerable")
    if not isinstance(data, Mapping) or not all(isinstance(data.get(f), bool) for f in flags):
        raise ReplyError("`clear` and `answerable` are not true or false")
    return ParsedReply({**{f: data[f] for f in flags}, "answer": clean_text(data.get("answer"))})


def _read_numbers(data: Any) -> ParsedReply:
    numbers = data.get("statements") if isinstance(data, Mapping) else data
    if not isinstance(numbers, list):
        raise ReplyError("it has no list of statements")
    kept = [number for number in numbers if type(number) is int]
    return ParsedReply(kept, len(numbers) - len(kept))


MADE = ReplyFormat(
    "made_question",
    object_schema(
        {"question": TEXT, "answer": TEXT, "quotations": {"type": "array", "items": TEXT}}
    ),
    _read_question,
    'Reply with one JSON object and nothing else: {"question": "...", "answer": "words of a '
    'quotation", "quotations": ["words of a passage", ...]}',
)
CHECKED = ReplyFormat(
    "checked_question",
    object_schema({"clear": BOOLEAN, "answerable": BOOLEAN, "answer": TEXT}),
    _read_check,
    'Reply with one JSON object and nothing else: {"clear": true or false, "answerable": true or '
    'false, "answer": "words of a passage"}',
)
CHECKED_STATEMENTS = ReplyFormat(
    "checked_statements",
    object_schema({"statements": {"type": "array", "items": {"type": "integer"}}}),
    _read_numbers,
    'Reply with one JSON object and nothing else: {"statements": [number, ...]}',
)


def ask_for_question(source: Source, prompts: Prompts) -> Request:
    """Return the request for a question from a source."""
    topic = "Theme" if source.kind == "whole-corpus" else "Both passages name"
    asked = [f"Kind: {source.kind}"]
    asked += [f"{topic}: {source.topic}"] if source.topic else []
    asked += _list_texts([passage.text for passage in source.passages])
    label = f"{source.kind} question from {source.passages[0].document}"
    return make_request("make_question", "\n\n".join(asked), MADE, prompts, label)


def ask_again(question: EvaluationQuestion, texts: Sequence[str], prompts: Prompts) -> Request:
    """Return the request that answers a question from texts alone, or chooses its statements."""
    if question.kind == "whole-corpus":
        asked = [f"Question: {question.text}", "Statements:"]
        asked += [f"{place}. {text}" for place, text in enumerate(question.statements, start=1)]
        return make_request(
            "check_statements", "\n\n".join(asked), CHECKED_STATEMENTS, prompts, question.text
        )
    asked = [*_list_texts(texts), f"Question: {question.text}"]
    return make_request("check_question", "\n\n".join(asked), CHECKED, prompts, question.text)


def _list_texts(texts: Sequence[str]) -> list[str]:
    return [
        f"[{place}] {quote_text(text)}" for place, text in enumerate(dict.fromkeys(texts), start=1)
    ]


def read_question(reply: Mapping[str, Any], source: Source) -> EvaluationQuestion:
    """Return the question of a reply; raises `DroppedError` if it or its evidence is wrong."""
    text, answer = reply["question"], reply["answer"]
    if not text:
        raise DroppedError("the model found no question")
    if source.kind == "unanswerable":
        question = EvaluationQuestion(
            "", text, source.kind, is_answerable=False, split=source.split
        )
    else:
        question = _with_evidence(text, answer, reply["quotations"], source)
    if question.kind == "two-hop" and holds(text, source.topic):
        raise DroppedError("the question names what it should describe")
    # A comparison contains its answer, which is one of the two names.
    if question.kind != "comparison" and any(holds(text, one) for one in question.answers[:1]):
        raise DroppedError("the answer stands in the question")
    return question


def _with_evidence(
    text: str, answer: str, quotations: Sequence[str], source: Source
) -> EvaluationQuestion:
    spans: dict[GoldSpan, int] = {}
    for quotation in quotations:
        found = ((one.find_sentences(quotation), at) for at, one in enumerate(source.passages))
        span, at = next((pair for pair in found if pair[0]), (None, 0))
        if span is None:
            raise DroppedError("a quotation is not in the passages")
        spans.setdefault(span, at)
    is_whole = source.kind == "whole-corpus"
    if not is_whole and not (answer and any(holds(span.text, answer) for span in spans)):
        raise DroppedError("the answer is not in the quotations")
    documents = tuple(dict.fromkeys(span.document for span in spans))
    if is_whole:
        is_enough = len(spans) >= MIN_STATEMENTS and len(documents) >= MIN_DOCUMENTS
    else:
        is_enough = len(set(spans.values())) == len(source.passages)
    if not is_enough:
        raise DroppedError("the quotations are of too few passages")
    return EvaluationQuestion(
        "",
        text,
        source.kind,
        documents=documents,
        spans=tuple(spans),
        statements=tuple(span.text for span in spans) if is_whole else (),
        answers=() if is_whole else (answer,),
        split=source.split,
    )


def confirm(question: EvaluationQuestion, reply: Any) -> EvaluationQuestion:
    """Return a question that the check confirms; raises `DroppedError` if it does not.

    A question on the whole corpus keeps the statements that belong to its answer.
    """
    if question.kind == "whole-corpus":
        return _keep_statements(question, reply)
    if not reply["clear"]:
        raise DroppedError("the question is unclear without its passage")
    if not question.is_answerable:
        if reply["answerable"]:
            raise DroppedError("the documents answer a question that they should not")
    elif not reply["answerable"] or not agrees(reply["answer"], question.answers):
        raise DroppedError("a reader of the span alone answers otherwise, or not")
    return question


def _keep_statements(question: EvaluationQuestion, numbers: Sequence[int]) -> EvaluationQuestion:
    spans = tuple(span for at, span in enumerate(question.spans, start=1) if at in numbers)
    documents = tuple(dict.fromkeys(span.document for span in spans))
    if len(spans) < MIN_STATEMENTS or len(documents) < MIN_DOCUMENTS:
        raise DroppedError("too few statements belong to the answer")
    said = tuple(span.text for span in spans)
    return replace(question, statements=said, spans=spans, documents=documents)


def holds(text: str, words: str) -> bool:
    """Return whether a text has words in their order, without regard to case and accents."""
    inside, wanted = fold(text), fold(words)
    if is_unspaced(wanted):
        return wanted.replace(" ", "") in inside.replace(" ", "")
    return bool(wanted) and f" {wanted} " in f" {inside} "


def agrees(answer: str, known: Sequence[str]) -> bool:
    """Return whether an answer equals a known answer, contains it, or is a large part of it.

    A part must have one of the numbers of the known answer, if both have numbers.
    """
    for right in known:
        if holds(answer, right):
            return True
        numbers = [set(_NUMBER.findall(text)) for text in (answer, right)]
        same = not all(numbers) or bool(numbers[0] & numbers[1])
        if same and holds(right, answer) and len(answer) >= MIN_ANSWER_SHARE * len(right):
            return True
    return False

"""Drift search: answer from reports, ask follow-up questions, and merge all answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.prompts import n_prompt_tokens
from graphrag_index.llm.request import ParsedReply, ReplyError, Request
from graphrag_index.schema.settings.searches import DriftSearch
from graphrag_nlp.text.citations import ShownRows, check_citations
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words, split_sentences
from graphrag_query.answer import Answer, Context, Outcome, SubQuestion
from graphrag_query.answering.cited_text import NO_RECORD
from graphrag_query.answering.extractive import Candidate, rank_candidates, split_into_candidates
from graphrag_query.answering.written_answer import (
    DeferredContext,
    Section,
    merge_contexts,
    pack_sections,
    pack_statements,
    source_context,
    write_answer,
)
from graphrag_query.llm import (
    LLM,
    REPLY_FIELDS,
    find_records,
    first_field,
    first_item,
    first_text,
    read_importance,
    read_questions,
    reply_format,
)
from graphrag_query.question.question import Mentions, Question
from graphrag_query.retrieval.report_selection import as_context_rows, note_reports, score_reports
from graphrag_query.searches.local_search import (
    find_evidence,
    local_context,
    start_text_unit_search,
)

# Maximum number of attempts per request. After an invalid reply, the second attempt allows a
# longer reply, and the third attempt shows the error to the model.
MAX_ATTEMPTS = 3
# Tokens reserved for an invalid reply and its error message when a request is sent again.
CORRECTION_TOKENS = 2_600
# Tokens that a provider adds to each prompt.
PROMPT_OVERHEAD_TOKENS = 50
# Tokens reserved for the instructions of one call.
STEP_INSTRUCTION_TOKENS = 700
# Maximum number of attempts for the final answer. It is requested again only if it is empty.
MAX_REDUCE_ATTEMPTS = 2
# Maximum number of unused follow-up questions that are suggested to the user.
MAX_SUGGESTIONS = 5
# Maps each count of an answer to the section of a context whose rows are counted.
_COUNTED_SECTIONS = {
    "community_reports": "Reports",
    "entities": "Entities",
    "relationships": "Relationships",
    "claims": "Claims",
    "text_units": "Sources",
}
NOTHING_FOUND = "Neither the reports nor the passages that were read say anything on this question."


@dataclass(frozen=True)
class StepAnswer:
    """The answer of one step. The answer cites rows of the step's context."""

    answer: str
    score: float  # 0 to 100; 0 if there is no answer
    follow_ups: tuple[str, ...]


def drift_search(question: Question, settings: DriftSearch) -> Answer:
    """Answer a broad question in steps.

    Primer: the reports most similar to the question give a first answer and follow-up
    questions. Rounds: the best follow-up questions are answered by local search, which gives
    more follow-up questions. Reduce: the final answer is written from the answers of all steps.
    All prompts together have at most `max_total_tokens`. Without a model, local search looks
    up the entities that the best sentences name. The outcome is `no_evidence` if no step found
    anything, or if the question names something that the documents do not mention.
    """
    if question.llm is None:
        return _answer_from_sentences(question, settings)
    if refusal := question.refuse():
        # The check of the names has searched all text units.
        counts = {"text_units": question.index.n_rows("text_unit_rows"), "steps": 0}
        return replace(refusal, looked_at=counts)

    steps = _DriftSteps(question, question.llm, settings)
    steps.ask_model([question.text], [steps.report_context()])
    for _ in range(settings.rounds):
        asked = steps.next_questions()
        steps.ask_model(asked, [steps.local_context(text) for text in asked])
    steps.check_failures()

    best = sorted(steps.answers, key=lambda step: -step[1].score)
    found = [(text, step) for text, step in best if step.score > 0]
    context, n_used = steps.pack_answers(found)
    question.counts.update(steps.count_rows(), answers=len(found), answers_used=n_used)
    notes = tuple(steps.notes)
    if n_used:
        follow_ups = tuple(steps.best_follow_ups(MAX_SUGGESTIONS))
        answer = replace(
            write_answer(question, "drift_reduce", context, notes), follow_ups=follow_ups
        )
    else:
        answer = question.answer(NOTHING_FOUND, Outcome.NO_EVIDENCE, notes=notes)
    sub_questions = tuple(SubQuestion(text, one.answer, one.score) for text, one in steps.answers)
    return replace(answer, context=merge_contexts(steps.contexts), sub_questions=sub_questions)


@dataclass
class _DriftSteps:
    """The steps of one drift search: their questions, contexts, answers and costs."""

    question: Question
    llm: LLM
    settings: DriftSearch
    answers: list[tuple[str, StepAnswer]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _follow_ups: list[tuple[float, str]] = field(default_factory=list)
    _asked: list[str] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)
    _estimated: int = 0

    @property
    def max_context_tokens(self) -> int:
        """Maximum tokens of the context of one call, so that `max_total_tokens` allows several."""
        share = self.settings.max_total_tokens // 10 - STEP_INSTRUCTION_TOKENS // 2
        return self.question.max_context_tokens(min(self.settings.max_context_tokens, share))

    def report_context(self) -> Context:
        """Return the context of the reports that are most similar to the question."""
        reports = score_reports(self.question).sort("score", "community", descending=[True, False])
        best = reports.head(self.settings.top_k_reports)
        note_reports(self.question, best, "score")
        rows = as_context_rows(self.question.index, best, "full_content")
        return pack_sections([Section("Reports", rows, 1.0)], self.max_context_tokens)

    def local_context(self, asked: str) -> Context:
        """Return the context of local search for a follow-up question."""
        follow_up = replace(self.question, text=asked, sink=None)
        local = self.question.local
        found = find_evidence(follow_up, local)
        return local_context(follow_up, found, local, self.max_context_tokens)

    def next_questions(self) -> list[str]:
        """Remove and return the best follow-up questions that were not asked yet.

        The first round also has the question itself, if it has cells or there are no others.
        """
        chosen = self.best_follow_ups(self.settings.follow_ups)
        if len(self._asked) == 1 and (self.question.cell_coverage.order or not chosen):
            chosen = [self.question.text, *chosen]
        self._follow_ups = [f for f in self._follow_ups if f[1] not in chosen]
        return chosen

    def best_follow_ups(self, most: int) -> list[str]:
        """Return follow-up questions that were not asked; those of the best answers come first."""
        # The sort is stable: follow-up questions with equal scores keep their order.
        ordered = sorted(self._follow_ups, key=lambda follow_up: -follow_up[0])
        return [text for _, text in ordered[:most]]

    def ask_model(self, questions: Sequence[str], contexts: Sequence[Context]) -> None:
        """Let the model answer questions from their contexts, while the token budget allows."""
        left = [
            (text, context, step_request(self.llm, self.question.text, text, context))
            for text, context in zip(questions, contexts, strict=True)
            if not context.is_empty
        ]
        self._asked += questions
        while left:
            n = self._n_affordable([request for _, _, request in left])
            if not n:
                n_left = len(left)
                left_out = f"{n_left} follow-up question" + (" was" if n_left == 1 else "s were")
                self.notes.append(f"{left_out} not asked: max_total_tokens is used.")
                return
            self.question.counts.update(self.count_rows([context for _, context, _ in left[:n]]))
            outcomes = self.llm.replies([request for _, _, request in left[:n]])
            for (text, context, request), outcome in zip(left[:n], outcomes, strict=True):
                self._estimated += _estimate_tokens(request)
                if outcome.failure:
                    self._failures.append(outcome.failure)
                    self.notes.append(f"A call failed ({outcome.failure}): “{text}”.")
                    continue
                step: StepAnswer = outcome.values[0]
                self.contexts.append(context)
                self.answers.append((text, step))
                for follow_up in step.follow_ups:
                    self._add_follow_up(follow_up, step.score)
            left = left[n:]

    def _add_follow_up(self, text: str, score: float) -> None:
        """Add a follow-up question, unless a similar question was asked or added before."""
        words = distinctive_words(text)
        known = [*self._asked, *(other for _, other in self._follow_ups)]
        if text.casefold() not in {other.casefold() for other in known} and not any(
            are_near_duplicates(words, distinctive_words(other)) for other in known
        ):
            self._follow_ups.append((score, text))

    def _n_affordable(self, requests: Sequence[Request]) -> int:
        """Return how many of these requests the token budget allows, including retries."""
        reduce = MAX_REDUCE_ATTEMPTS * (4 * self.max_context_tokens // 3 + STEP_INSTRUCTION_TOKENS)
        # Use the estimate for servers that report no usage.
        spent = self.llm.usage.prompt_tokens or self._estimated
        left = self.settings.max_total_tokens - reduce - spent
        costs = (
            MAX_ATTEMPTS * _estimate_tokens(request) + CORRECTION_TOKENS for request in requests
        )
        return sum(total <= left for total in accumulate(costs))

    def check_failures(self) -> None:
        """Raise `ModelError` if calls were made and all of them failed."""
        if self._failures and not self.answers:
            n_failed = len(self._failures)
            self.question.counts.update(steps=n_failed, steps_failed=n_failed)
            raise ModelError(f"The model answered no step: {self._failures[0]}.")

    def count_rows(self, asked: Sequence[Context] = ()) -> dict[str, int]:
        """Count the rows that the steps have read, including the contexts `asked` just now."""
        shown = merge_contexts([*self.contexts, *asked]).shown
        counts = {name: len(shown.get(section, ())) for name, section in _COUNTED_SECTIONS.items()}
        return counts | {
            "steps": len(self.answers) + len(self._failures),
            "steps_failed": len(self._failures),
        }

    def pack_answers(self, found: Sequence[tuple[str, StepAnswer]]) -> tuple[Context, int]:
        """Pack the best answers into a context. Returns the context and their number."""
        columns = {
            "score": [round(step.score) for _, step in found],
            "question": [text for text, _ in found],
            "answer": [step.answer for _, step in found],
        }
        # Answers without citations do not count as evidence.
        read = merge_contexts(self.contexts)
        return pack_statements("Answers", columns, read, self.max_context_tokens)


def _estimate_tokens(request: Request) -> int:
    """Return an upper estimate of the prompt tokens of a request."""
    texts = [message["content"] for message in request.messages]
    texts += [request.format.instructions, json.dumps(request.format.schema)]
    return sum(map(n_prompt_tokens, texts)) + PROMPT_OVERHEAD_TOKENS


def step_request(llm: LLM, whole: str, asked: str, context: Context) -> Request:
    """Build the request to answer one step's question; `whole` is the user's question."""
    lines = [context.text, f"The larger question: {whole}", f"Question: {asked}"]
    return Request(
        asked,
        llm.messages("drift_step", "\n".join(lines)),
        reply_format("drift_step", partial(_parse_step, context.shown)),
    )


def _parse_step(shown: ShownRows, data: Any) -> ParsedReply:
    """Parse the reply to a step. Invalid citations and follow-up questions are dropped."""
    data = first_item(data)
    if isinstance(data, str):
        data = {"answer": data}
    if not isinstance(data, Mapping):
        raise ReplyError("it is no JSON object with answer, score and follow_ups")
    answer, dropped = check_citations(first_text(data, "answer"), shown)
    if answer.upper().startswith(NO_RECORD):
        answer = ""
    listed = {"follow_ups": first_field(data, REPLY_FIELDS["follow_ups"])}
    records = find_records(listed, "follow_ups", REPLY_FIELDS["question"])
    follow_ups = tuple(read_questions(records))
    if not answer and not follow_ups and not any(key in data for key in REPLY_FIELDS["answer"]):
        raise ReplyError("it has no answer and no follow_ups")
    score = read_importance(data.get("score", data.get("rating"))) if answer else 0.0
    dropped += len(records) - len(follow_ups)
    return ParsedReply(StepAnswer(answer, score, follow_ups), dropped)


def _answer_from_sentences(question: Question, settings: DriftSearch) -> Answer:
    """Answer a broad question with the best sentences of several rounds.

    The first round starts with the sentences of the reports most similar to the question. In
    each round, local search looks up the entities that the best sentences name, together with
    the question.
    """
    index, local = question.index, question.local
    reports = score_reports(question).sort("score", "community", descending=[True, False])
    reports = index.with_texts(reports.head(settings.top_k_reports), "summary", "findings")
    note_reports(question, reports, "score")
    first = find_evidence(question, local)
    text_units, priors = dict(first.text_units), first.own_scores()
    covered = {mention.entity for mention in question.mentions.entities}
    sentences = [
        candidate for report in reports.iter_rows(named=True) for candidate in _split_report(report)
    ]
    followed: list[str] = []
    asked: list[SubQuestion] = []
    for _ in range(settings.rounds):
        entities = _find_entities_of_best(question, sentences, covered, settings.follow_ups)
        titles = index.entities(entities)["title"].to_list()
        sub_questions = [f"{title}: {question.text}" for title in titles]
        # All searches of a round are started before one is waited for.
        searches = [
            start_text_unit_search(replace(question, text=text), local) for text in sub_questions
        ]
        for ranked in (search() for search in searches):
            new = {unit.number: unit for unit in ranked if unit.number not in text_units}
            rows = index.text_units(new)
            for number, unit in new.items():
                text_units[number], priors[number] = rows[number], unit.own_score
        followed += titles
        asked += map(SubQuestion, sub_questions)
        covered.update(entities)
        sentences = split_into_candidates(text_units.values(), priors)

    question.counts.update(
        community_reports=reports.height,
        entities_followed=len(followed),
        text_units=len(text_units),
    )
    if refusal := question.refuse([*first.named, *(unit["text"] for unit in text_units.values())]):
        return refusal
    from graphrag_query.answering.quoted_answer import quote_answer

    answer = quote_answer(
        question,
        text_units,
        priors,
        settings,
        DeferredContext(partial(source_context, question, text_units), settings.max_context_tokens),
        named=first.named,
    )
    if not followed or answer.outcome is Outcome.NO_EVIDENCE:
        return answer
    notes = (f"Followed up: {', '.join(followed)}.",)
    return replace(answer, notes=notes, sub_questions=tuple(asked))


def _split_report(report: Mapping[str, Any]) -> list[Candidate]:
    """Split a report into sentences and remove the citations."""
    parts = [report["summary"], *(finding["explanation"] for finding in report["findings"])]
    texts = [check_citations(part, {})[0] for part in parts]
    return [
        Candidate(text[sentence.start : sentence.end], 0, 0, 0, report["score"])
        for text in texts
        for sentence in split_sentences(text)
    ]


def _find_entities_of_best(
    question: Question, sentences: list[Candidate], covered: set[int], most: int
) -> list[int]:
    """Return the entities that the best sentences name and that are not yet `covered`."""
    found: dict[int, None] = {}
    for sentence in rank_candidates(question, sentences):
        if len(found) >= most:
            break
        named = Mentions(question.index, sentence.candidate.text).exact_entities
        found |= dict.fromkeys(entity for entity in named if entity not in covered)
    return list(found)[:most]

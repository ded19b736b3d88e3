"""Drift search: start from the reports, follow up with local questions, reduce the answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl

from graphrag_index.errors import ModelError
from graphrag_index.llm.rendered_rows import n_prompt_tokens
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.searches import DriftSearch, LocalSearch
from graphrag_index.text.citations import cited
from graphrag_index.text.sentences import are_near_duplicates, telling_words
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.chat import Chat
from graphrag_query.answering.context import Context, Section, joined, pack
from graphrag_query.answering.written_answer import write_answer
from graphrag_query.question.question import Question
from graphrag_query.question.question_names import not_mentioned, unknown_names
from graphrag_query.retrieval.report_selection import as_shown, by_fit
from graphrag_query.searches.drift_sentences import drift_sentences
from graphrag_query.searches.drift_step import StepAnswer, step_request
from graphrag_query.searches.local_search import find_evidence, local_context

# A reply that is no good is asked for again, with more room and then with what was wrong.
MOST_ATTEMPTS = 3
# What was wrong with a reply, with that reply; and what a provider adds to a prompt.
TOKENS_OF_CORRECTION = 2_600
TOKENS_AROUND = 50
# For the instructions of one call.
TOKENS_OF_STEP = 700
# A text that is streamed is asked for again only if it is empty.
ATTEMPTS_OF_REDUCE = 2
# Follow-ups that were not asked and are given to the reader.
SUGGESTED = 5
NOTHING_FOUND = "Neither the reports nor the passages that were read say anything on this question."


def drift_search(question: Question, settings: DriftSearch, local: LocalSearch) -> Answer:
    """Answer a broad question in steps.

    Primer: the reports most similar to the question give a first answer and follow-up
    questions. Rounds: the best of these are answered like local questions (`local`), which
    leads to more. Reduce: the answer is written from those of the steps. All prompts
    together stay within `max_total_tokens`. Without a model, see `drift_sentences`. The
    outcome is `no_evidence` if no step found anything, or if the question names what the
    documents do not.
    """
    if question.chat is None:
        return drift_sentences(question, settings, local)
    answer = partial(question.answer, method="drift", parameters=settings.model_dump())
    unknown = unknown_names(question.model, question.text, ())
    if unknown:
        # All text units were searched for the name.
        counts = {"text_units": question.model.rows("text_unit_rows"), "steps": 0}
        return answer(not_mentioned(unknown), looked_at=counts, outcome=Outcome.NO_EVIDENCE)

    steps = _Steps(question, question.chat, settings, local)
    steps.ask([question.text], steps.reports())
    for _ in range(settings.rounds):
        asked = steps.next_questions()
        steps.ask(asked, [steps.evidence(text) for text in asked])
    steps.check()

    best = sorted(steps.answers, key=lambda step: -step[1].score)
    found = [(text, step) for text, step in best if step.score > 0]
    context, n_used = steps.context_of(found)
    looked_at = steps.counts() | {"answers": len(found), "answers_used": n_used}
    follow_ups = tuple(steps.waiting(SUGGESTED))
    notes = tuple(steps.notes)
    if not n_used:
        return answer(
            NOTHING_FOUND,
            looked_at=looked_at,
            outcome=Outcome.NO_EVIDENCE,
            notes=notes,
            context=joined(steps.contexts),
        )
    written = write_answer(
        question,
        "drift_reduce",
        context,
        method="drift",
        parameters=settings.model_dump(),
        looked_at=looked_at,
        notes=notes,
    )
    return replace(written, follow_ups=follow_ups, context=joined(steps.contexts))


@dataclass
class _Steps:
    """The steps of one question: what they were asked and shown, what they found and cost."""

    question: Question
    chat: Chat
    settings: DriftSearch
    local: LocalSearch
    answers: list[tuple[str, StepAnswer]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _follow_ups: list[tuple[float, str]] = field(default_factory=list)
    _asked: list[str] = field(default_factory=list)
    _failures: list[str] = field(default_factory=list)
    _estimated: int = 0

    @property
    def max_context_tokens(self) -> int:
        """How long the context of one call may be, so that the total has room for some."""
        share = self.settings.max_total_tokens // 10 - TOKENS_OF_STEP // 2
        return self.question.max_context_tokens(min(self.settings.max_context_tokens, share))

    def reports(self) -> list[Context]:
        """Return the reports most similar to the question as a context; none if there are none."""
        reports = by_fit(self.question).sort("score", "community", descending=[True, False])
        best = reports.head(self.settings.top_k_reports)
        rows = as_shown(self.question.model, best, "full_content")
        context = pack([Section("Reports", rows, 1.0)], self.max_context_tokens)
        return [] if context.is_empty else [context]

    def evidence(self, asked: str) -> Context:
        """Return what the index holds near a follow-up question."""
        follow_up = replace(self.question, text=asked, sink=None)
        local = self.local.model_copy(update={"max_context_tokens": self.max_context_tokens})
        return local_context(follow_up, find_evidence(follow_up, local), local)

    def next_questions(self) -> list[str]:
        """Take the best follow-ups; the question itself if nothing else was asked locally."""
        chosen = self.waiting(self.settings.follow_ups)
        if not chosen and len(self._asked) == 1:
            chosen = [self.question.text]
        self._follow_ups = [f for f in self._follow_ups if f[1] not in chosen]
        return chosen

    def waiting(self, most: int) -> list[str]:
        """Return follow-ups that were not asked, those of the best answers first."""
        # Python sorts stably: of one score, the order in which they came up.
        ordered = sorted(self._follow_ups, key=lambda follow_up: -follow_up[0])
        return [text for _, text in ordered[:most]]

    def ask(self, questions: Sequence[str], contexts: Sequence[Context]) -> None:
        """Ask some questions, each from its context, as far as the tokens reach."""
        left = [
            (text, context, step_request(self.chat, self.question.text, text, context))
            for text, context in zip(questions, contexts, strict=False)
            if not context.is_empty
        ]
        self._asked += questions
        while left:
            n = self._n_affordable([request for _, _, request in left])
            if not n:
                n_left = len(left)
                what = "question was" if n_left == 1 else "questions were"
                self.notes.append(f"{n_left} follow-up {what} not asked: max_total_tokens is used.")
                return
            self.question.counts.update(self.counts([context for _, context, _ in left[:n]]))
            outcomes = self.chat.replies([request for _, _, request in left[:n]])
            for (text, context, request), outcome in zip(left[:n], outcomes, strict=True):
                self._estimated += _estimate(request)
                if outcome.failure:
                    self._failures.append(outcome.failure)
                    self.notes.append(f"A call failed ({outcome.failure}): “{text}”.")
                    continue
                step: StepAnswer = outcome.values[0]
                self.contexts.append(context)
                self.answers.append((text, step))
                for follow_up in step.follow_ups:
                    self._follow_up(follow_up, step.score)
            left = left[n:]

    def _follow_up(self, text: str, score: float) -> None:
        """Note a follow-up, unless the same was asked or noted before."""
        words = telling_words(text)
        known = [*self._asked, *(other for _, other in self._follow_ups)]
        if text.casefold() not in {other.casefold() for other in known} and not any(
            are_near_duplicates(words, telling_words(other)) for other in known
        ):
            self._follow_ups.append((score, text))

    def _n_affordable(self, requests: Sequence[Request]) -> int:
        """Return how many of some requests may be sent at once, whatever becomes of them."""
        reduce = ATTEMPTS_OF_REDUCE * (4 * self.max_context_tokens // 3 + TOKENS_OF_STEP)
        # Some servers do not tell what they counted.
        spent = self.chat.usage.prompt_tokens or self._estimated
        left = self.settings.max_total_tokens - reduce - spent
        n = 0
        for request in requests:
            left -= MOST_ATTEMPTS * _estimate(request) + TOKENS_OF_CORRECTION
            if left < 0:
                break
            n += 1
        return n

    def check(self) -> None:
        """See that a call came through, if any was made."""
        if self._failures and not self.answers:
            n_failed = len(self._failures)
            self.question.counts.update(steps=n_failed, steps_failed=n_failed)
            raise ModelError(f"The model answered no step: {self._failures[0]}.")

    def counts(self, asked: Sequence[Context] = ()) -> dict[str, int]:
        """Count what was read, also in contexts that are being asked about."""
        shown = joined([*self.contexts, *asked]).shown
        names = {
            "community_reports": "Reports",
            "entities": "Entities",
            "relationships": "Relationships",
            "claims": "Claims",
            "text_units": "Sources",
        }
        counts = {name: len(shown.get(section, ())) for name, section in names.items()}
        return counts | {
            "steps": len(self.answers) + len(self._failures),
            "steps_failed": len(self._failures),
        }

    def context_of(self, found: Sequence[tuple[str, StepAnswer]]) -> tuple[Context, int]:
        """Put the best answers into a context, from which what they cite may be cited."""
        rows = pl.DataFrame(
            [(n, round(step.score), text, step.answer) for n, (text, step) in enumerate(found, 1)],
            {"id": pl.Int64, "score": pl.Int64, "question": pl.String, "answer": pl.String},
            orient="row",
        )
        packed = pack([Section("Answers", rows, 1.0)], self.max_context_tokens)
        n_used = packed.tables["Answers"].height if "Answers" in packed.tables else 0
        numbers = cited("\n".join(step.answer for _, step in found[:n_used]))
        tables = {
            name: rows.filter(rows.to_series(0).is_in(sorted(numbers.get(name, ()))))
            for name, rows in joined(self.contexts).tables.items()
        }
        # Answers that cite nothing are evidence of nothing.
        return replace(packed, tables=tables), n_used if any(map(len, tables.values())) else 0


def _estimate(request: Request) -> int:
    """What a request takes once, rather too much."""
    texts = [message["content"] for message in request.messages]
    texts += [request.format.instructions, json.dumps(request.format.schema)]
    return sum(map(n_prompt_tokens, texts)) + TOKENS_AROUND

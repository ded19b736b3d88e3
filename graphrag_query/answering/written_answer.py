"""Answers that a model writes from a context: citations checked, streamed if wanted."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphrag_index.llm.request import TextSink
from graphrag_index.text.citations import Shown
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.cited_text import CitedText
from graphrag_query.answering.context import Context
from graphrag_query.answering.llm import LLM, Written
from graphrag_query.question.question import Question

NOTHING_READ = "The index holds nothing about this question."
CUT_OFF = "The model was cut off before its end: raise max_output_tokens of this model."
# Quotations that notes repeat; the others are counted.
MAX_NOT_FOUND = 3
NO_RECORD_TEXT = "The documents that were read hold no record of this."
# Between a text that broke off and its second attempt.
RESTARTED = "\n\n[The model broke off; once more from the start:]\n\n"


def write_answer(
    question: Question,
    prompt: str,
    context: Context,
    *,
    method: str,
    parameters: Mapping[str, Any],
    looked_at: Mapping[str, int],
    notes: tuple[str, ...] = (),
    shown: Shown | None = None,
) -> Answer:
    """Ask the question's model to answer from a context, by the named prompt.

    `shown` are the rows that may be cited, if not all of the context. The outcome is
    `no_evidence` if the context is empty (then no model is asked), or if the model says that it
    holds no answer.

    Raises
    ------
    ModelError
        The model gave no answer.
    """
    llm = question.llm
    assert llm is not None
    if context.is_empty:
        return question.answer(
            NOTHING_READ, method, parameters, looked_at, Outcome.NO_EVIDENCE, context=context
        )
    question.counts.update(looked_at)
    citable = context.shown if shown is None else shown
    cited = CitedText(question.index, citable, question.search.citations)
    text, is_cut_off = _write(question, llm, prompt, context, cited)
    if is_cut_off:
        notes = (*notes, CUT_OFF)
    return question.answer(
        text or NO_RECORD_TEXT,
        method,
        parameters,
        looked_at,
        Outcome.NO_EVIDENCE if cited.has_no_record or not text else Outcome.ANSWERED,
        # An answer without a record may cite related passages.
        citations=tuple(cited.citations),
        notes=(*notes, *(notes_on(cited) if citable else ())),
        context=context,
    )


def notes_on(cited: CitedText) -> tuple[str, ...]:
    """Describe the faults found in the citations of a text."""
    notes = []
    if cited.n_removed:
        what = "citation" if cited.n_removed == 1 else "citations"
        notes.append(f"{cited.n_removed} {what} of rows that the model was not shown removed.")
    if cited.has_begun and not (cited.citations or cited.has_no_record):
        notes.append("The model cites no passage for this.")
    not_found = list(dict.fromkeys(cited.not_found))
    listed = not_found if len(not_found) <= MAX_NOT_FOUND + 1 else not_found[:MAX_NOT_FOUND]
    notes += [f"Not in the passage cited: “{quotation}”." for quotation in listed]
    if len(listed) < len(not_found):
        more = len(not_found) - len(listed)
        notes.append(f"{more} more quotations are not in the passages cited for them.")
    return tuple(notes)


def _write(
    question: Question, llm: LLM, prompt: str, context: Context, cited: CitedText
) -> Written:
    """Request the text, and check it while it is being written."""
    asked = f"{context.text}\nQuestion: {question.text}"
    messages = llm.messages(prompt, asked, response=question.search.response)
    sink = CheckedSink(question, cited) if question.sink else None
    written = llm.write(question.text, messages, sink)
    if sink is None:
        return Written(cited.feed(written.text, is_last=True).strip(), written.is_cut_off)
    return Written(sink.end(written.text).strip(), written.is_cut_off)


class CheckedSink:
    """Checks a text while it is being written, and passes on the checked parts."""

    def __init__(self, question: Question, cited: CitedText) -> None:
        assert question.sink is not None
        self._sink, self._cited = question.sink, cited
        self._parts: list[str] = []

    def write(self, piece: str) -> None:
        """Take the next piece."""
        self._pass_on(self._cited.feed(piece))

    def restart(self) -> None:
        """Forget what was written."""
        self._cited.restart()
        if self._parts:
            self._sink.restart()
        self._parts.clear()

    def end(self, written: str) -> str:
        """Pass on the rest and return the whole; `written` is the reply if nothing was streamed."""
        rest = "" if self._parts or self._cited.has_begun else written
        self._pass_on(self._cited.feed(rest, is_last=True))
        return "".join(self._parts)

    def _pass_on(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._sink.write(text)


class AnswerStream:
    """An answer that can be read while it is being written.

    Iterating yields the text in pieces; `answer` waits for the whole. Keep the text of the
    answer: after a call that broke off, the pieces contain both attempts.
    """

    def __init__(self, ask: Callable[[TextSink], Answer]) -> None:
        self._pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def write(self, piece: str) -> None:
        """Take the next piece from the search."""
        self._pieces.put(piece)

    def restart(self) -> None:
        """Mark that the text begins again."""
        self._pieces.put(RESTARTED)

    def __iter__(self) -> Iterator[str]:
        while (piece := self._pieces.get()) is not None:
            yield piece
        # For another iteration.
        self._pieces.put(None)
        if self._error is not None:
            raise self._error

    @property
    def answer(self) -> Answer:
        """The whole answer. ParsedReply it raises the error of the search."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def _run(self, ask: Callable[[TextSink], Answer]) -> None:
        try:
            self._answer = ask(self)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is read
            self._error = error
        finally:
            self._pieces.put(None)


class CountingSink:
    """A sink that knows whether anything was written into it since its last restart."""

    def __init__(self, sink: TextSink) -> None:
        self._sink, self.is_empty = sink, True

    def write(self, piece: str) -> None:
        """Pass a piece on."""
        self.is_empty = False
        self._sink.write(piece)

    def restart(self) -> None:
        """Pass the restart on."""
        self.is_empty = True
        self._sink.restart()
